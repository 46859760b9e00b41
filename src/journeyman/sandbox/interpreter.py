"""The Python interpreter that is shown inside: this program's base installation without any installed package."""

from __future__ import annotations

import sys
import sysconfig
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

#: Where the installation appears inside, unless it belongs to the system under /usr.
PYTHON_ROOT = "/opt/python"


@dataclass(frozen=True)
class Interpreter:
    """What to mount, and where the interpreter is then.

    Attributes:
        program: its path inside.
        mounts: (path on the host, path inside), read-only.
        masks: directories inside that are replaced by empty ones: site-packages.
        library_path: directory inside of a shared libpython that the loader would not find, or None.
    """

    program: str
    mounts: tuple[tuple[str, str], ...]
    masks: tuple[str, ...]
    library_path: str | None


@lru_cache(maxsize=1)
def interpreter() -> Interpreter:
    """The running interpreter's base installation (``sys.base_prefix``), never its virtual environment."""
    base = Path(sys.base_prefix).resolve()
    binary = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    if base == Path("/usr"):
        return Interpreter(str(binary), (), (), None)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    library = base / "lib"
    mounts = [
        (str(binary), f"{PYTHON_ROOT}/bin/{version}"),
        (str(library / version), f"{PYTHON_ROOT}/lib/{version}"),
    ]
    shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    if shared:
        name = str(sysconfig.get_config_var("INSTSONAME"))
        mounts.append((str(library / name), f"{PYTHON_ROOT}/lib/{name}"))
    masks = [
        f"{PYTHON_ROOT}/lib/{version}/{name}" for name in ("site-packages",) if (library / version / name).is_dir()
    ]
    return Interpreter(
        f"{PYTHON_ROOT}/bin/{version}",
        tuple(mounts),
        tuple(masks),
        f"{PYTHON_ROOT}/lib" if shared else None,
    )


@lru_cache(maxsize=1)
def system_masks() -> tuple[str, ...]:
    """Package directories of the system's interpreters under /usr/lib, which are mounted and have to be hidden."""
    found: list[str] = []
    for library in ("/usr/lib", "/usr/lib64"):
        if Path(library).is_symlink():
            continue
        for name in ("site-packages", "dist-packages"):
            found.extend(str(p) for p in Path(library).glob(f"python3*/{name}") if p.is_dir() and not p.is_symlink())
    return tuple(sorted(set(found)))
