#!/bin/sh
# Print the path of a Python >= 3.11 that really runs, or say what to install and exit 3.
# A name on PATH proves nothing: version managers put shims there that only print an error.
set -u

works() {
  command -v "$1" >/dev/null 2>&1 &&
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11) or sys.implementation.name != "cpython")' >/dev/null 2>&1
}

for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11 python3.14 python; do
  if works "$candidate"; then
    "$candidate" -c 'import sys; print(sys.executable)'
    exit 0
  fi
  if [ "$candidate" = "${PYTHON:-}" ]; then
    echo "PYTHON=$PYTHON does not run, or is older than Python 3.11" >&2
    exit 3
  fi
done

echo "journeyman needs Python 3.11 or newer; none was found on PATH." >&2
echo "Debian or Ubuntu: apt install python3 python3-venv    macOS: brew install python@3.13    any system: uv python install 3.13" >&2
echo "A Python elsewhere: make PYTHON=/path/to/python3.13" >&2
exit 3
