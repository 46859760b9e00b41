"""The house as data: which files there are, and the table of rooms in docs/architecture.md."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "journeyman"


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def modules() -> dict[str, ast.Module]:
    """Every module of the package, parsed, by its path relative to the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    }


@pytest.fixture(scope="session")
def rooms() -> dict[str, int]:
    """Number of each room, read from the table in docs/architecture.md: rows ``| 2 | `engines/` | ...``."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d) \| ((?:`\w+/`(?:, )?)+) \|", text, flags=re.MULTILINE)
    return {room: int(number) for number, names in rows for room in re.findall(r"`(\w+)/`", names)}


@pytest.fixture(scope="session")
def tracked() -> list[Path]:
    """Files that belong to the project: what git tracks, or in an unpacked archive every file outside ``.venv``."""
    if (ROOT / ".git").exists() and shutil.which("git"):
        listed = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True
        )
        names = listed.stdout.decode().split("\0")
        return [ROOT / name for name in names if name and (ROOT / name).is_file()]
    skipped = {".venv", ".git", "runs", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}
    return [p for p in sorted(ROOT.rglob("*")) if p.is_file() and not skipped & set(p.relative_to(ROOT).parts)]
