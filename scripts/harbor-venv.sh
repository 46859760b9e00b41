#!/bin/sh
# Make .venv-harbor in the current directory: Harbor, for `make test-harbor` only (about 470 MB; docs/interchange.md).
#
# Harbor needs Python 3.12 and pins libraries that journeyman does not, so it never shares an environment with it and is
# no extra of the package. Without such a Python nothing is made, the reason is said, and the tests are skipped by name.
set -eu

venv=.venv-harbor
version=0.26.0
ready=$venv/.ready-$version

say() { echo "$*" >&2; }

if [ -e "$ready" ]; then exit 0; fi
for python in "${JOURNEYMAN_PYTHON312:-}" python3.12 python3.13 python3.14; do
  if [ -n "$python" ] && "$python" -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then
    say "making $venv with harbor $version on $("$python" --version 2>&1); a minute"
    rm -rf "$venv"
    "$python" -m venv "$venv"
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check install "harbor==$version"
    : >"$ready"
    exit 0
  fi
done
say "no Python 3.12 or newer: Harbor's tests will be skipped; name one with JOURNEYMAN_PYTHON312=/path/to/python3.12"
