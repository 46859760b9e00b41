#!/bin/sh
# Make .venv-megatron in the current directory: journeyman with megatron-core, for `make test-megatron` only.
#
# megatron-core is no extra of the package: newer releases need a newer Python and a CUDA build of torch. Pinned is the
# release that the adapter was tested with; its own requirements (torch, numpy, packaging) are there already. Torch is
# held to the CPU build as everywhere here (constraints-cpu.txt); where pip finds it is the machine's business.
set -eu

venv=.venv-megatron
version=0.16.1
constraints=constraints-cpu.txt
ready=$venv/.ready-$version-$(cat "$constraints" pyproject.toml | cksum | cut -d' ' -f1)

say() { echo "$*" >&2; }

if [ -e "$ready" ]; then exit 0; fi
say "making $venv with megatron-core $version; minutes"
rm -rf "$venv"
"$(sh scripts/find-python.sh)" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }
pip install -e ".[train]" packaging -c "$constraints"
pip install --no-deps "megatron-core==$version"
if ! "$venv/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda is not None)'; then
  say "pip took a torch built for CUDA: give it a directory or an index that holds the CPU build (PIP_FIND_LINKS)"
  exit 3
fi
: >"$ready"
