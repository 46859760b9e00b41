#!/bin/sh
# Make .venv in the current directory and install this project into it with the extras given: install.sh train,dev
#
# uv does it in seconds when it is on PATH; otherwise venv and pip. Torch must be the CPU build: on Linux the default index
# carries the build that needs 3 GB of CUDA libraries. A wheel directory (pip's find-links, or UV_FIND_LINKS) may hold the
# CPU build; otherwise uv knows where it is published. Neither place is named here: it belongs to the machine, not to us.
set -eu

unset PYTHONDONTWRITEBYTECODE
extras=$1
venv=.venv
python=$(sh scripts/find-python.sh)
constraints=constraints-cpu.txt
if [ -n "${CUDA:-}" ]; then constraints=/dev/null; fi

say() { echo "$*" >&2; }

# The base interpreter's pip where it can serve another environment: to unpack and compile one for each costs eight
# CPU-seconds. The package pip is installed with the others.
pip() {
  if serves; then "$python" -m pip --python "$venv/bin/python" "$@"; else "$venv/bin/python" -m pip "$@"; fi
}
serves() { "$python" -m pip --python "$venv/bin/python" --version >/dev/null 2>&1; }

if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
  say "creating $venv with $python"
  rm -rf "$venv"
  if ! { "$python" -m venv --without-pip "$venv" 2>/dev/null && serves; } &&
    ! { rm -rf "$venv" && "$python" -m venv "$venv" 2>/dev/null; }; then
    rm -rf "$venv"
    if ! command -v uv >/dev/null 2>&1 || ! uv venv --quiet --seed --python "$python" "$venv"; then
      say "$python cannot make a virtual environment. Debian or Ubuntu: apt install python3-venv; or install uv."
      exit 3
    fi
  fi
fi

with_uv() { # with_uv UV: install with this uv
  backend=
  if [ -n "${UV_FIND_LINKS:-}" ]; then
    [ -d "$UV_FIND_LINKS" ] || unset UV_FIND_LINKS # uv stops at a directory that is not there
  fi
  if [ -z "${UV_FIND_LINKS:-}" ] && [ -z "${CUDA:-}" ]; then backend=--torch-backend=cpu; fi
  "$1" pip install --python "$venv/bin/python" $backend -e ".[$extras]" -c "$constraints"
}

# Would pip take a torch that brings CUDA along? Asked without installing anything.
brings_cuda() {
  pip install --quiet --dry-run --ignore-installed --report - "torch" -c "$constraints" 2>/dev/null |
    grep -qiE '"name": *"(nvidia|cuda)[-_]'
}

if command -v uv >/dev/null 2>&1; then
  say "installing with uv"
  if with_uv uv; then exit 0; fi
  say "uv could not do it; trying pip"
  pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip --upgrade >/dev/null
fi

case ",$extras," in
*,train,*)
  if [ -z "${CUDA:-}" ] && brings_cuda; then
    say "pip would fetch the CUDA build of torch; asking uv for the CPU build"
    if pip install --quiet uv && with_uv "$venv/bin/uv"; then exit 0; fi
    say "the CPU build cannot be reached from here: this download is about 3 GB larger than it needs to be (CONTRIBUTING.md)"
  fi
  ;;
esac
say "installing with pip; minutes on a slow connection"
pip install --quiet --disable-pip-version-check --no-compile pip -e ".[$extras]" -c "$constraints"
# Only what is small or needed at once is compiled, on every core; of the large packages Python itself compiles and keeps
# what it imports. All of them are 80 CPU-seconds, what is imported of them 10.
"$venv/bin/python" -m compileall -qq -j 0 -x \
  '/site-packages/(torch|functorch|transformers|sympy|mpmath|scipy|networkx|pyarrow|numpy|pip|setuptools|ray|datasets|pandas|polars|duckdb|mypy|mypyc|moto|boto3|botocore)/|/tests?/' \
  "$venv"/lib/python3*/site-packages src >/dev/null 2>&1 || true
