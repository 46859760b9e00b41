"""Runs first in every Python of a verifier's sandbox: what an agent left is the last place anything is imported from.

With PYTHONSAFEPATH Python puts neither the script's directory nor the working directory before its own library. They
follow here, after everything else: tests still find what they test, and no file of an agent stands in for pytest, for a
plugin or for a module of the library. Pytest gets the plugin ``verifier_guard``, a cache of its own, and a known
configuration where it would read an agent's. Nothing here may fail: it would fail every test.
"""

# pathlib would be loaded before every program of a verifier, and it resolves what is only to be named.
# ruff: noqa: PTH100, PTH109, PTH110, PTH112, PTH113, PTH118, PTH120

import contextlib
import hashlib
import os
import sys

CONFIGS = ("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
"""Files that pytest takes its configuration from."""


def untrusted_roots() -> "list[str]":
    """Directories in which an agent could write, as real paths."""
    return [os.path.realpath(p) for p in os.environ.get("VERIFIER_UNTRUSTED", "").split(os.pathsep) if p]


def is_untrusted(path: str) -> bool:
    """Whether a path lies where an agent could write, by its name or by what it leads to."""
    named = [os.path.abspath(path), os.path.realpath(path)]
    return any(name == root or name.startswith(root + os.sep) for name in named for root in untrusted_roots())


def is_known(path: str) -> bool:
    """Whether a file is one that the author of the task put into the environment."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() in os.environ.get("VERIFIER_KNOWN", "").split()
    except OSError:
        return False


def planted_config(places: "list[str]") -> bool:
    """Whether pytest, asked about these places, would find an agent's configuration."""
    for place in places:
        folder = os.path.abspath(place)
        folder = folder if os.path.isdir(folder) else os.path.dirname(folder)
        while is_untrusted(folder):
            found = [os.path.join(folder, name) for name in CONFIGS if os.path.isfile(os.path.join(folder, name))]
            if found:
                if not all(map(is_known, found)):
                    return True
                break
            folder = os.path.dirname(folder)
    return False


def pytest_options(places: "list[str]") -> str:
    """What is put before the words of every pytest."""
    options = ["-p", "verifier_guard", "-o", "cache_dir=/tmp/pytest-cache"]
    config = os.environ.get("VERIFIER_CONFIG")
    if config and planted_config(places):
        options += ["-c", config, "--rootdir=" + os.path.dirname(config)]
    return " ".join(options)


def main() -> None:
    """Order the path of this Python, and set what every pytest of it is told."""
    words = getattr(sys, "orig_argv", sys.argv)[1:]
    scripts = [word for word in words if word.endswith(".py") and os.path.isfile(word)]
    here = os.getcwd()
    for place in [os.path.dirname(os.path.abspath(word)) for word in scripts[:1]] + [here]:
        if place not in sys.path:
            sys.path.append(place)
    places = [here] + [word.split("::")[0] for word in words if os.path.exists(word.split("::")[0])]
    given = os.environ.get("VERIFIER_ADDOPTS", os.environ.get("PYTEST_ADDOPTS", ""))
    os.environ["VERIFIER_ADDOPTS"] = given  # a process that this one starts finds its own options
    os.environ["PYTEST_ADDOPTS"] = (pytest_options(places) + " " + given).strip()


if "VERIFIER_UNTRUSTED" in os.environ:
    with contextlib.suppress(OSError):  # e.g. a working directory that is gone
        main()
