"""The agent environment: what goes in, what may not, and that it is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox import environment
from journeyman.sandbox.environment import build_environment, requirement_closure


def make_package(root: Path, name: str, text: str) -> Path:
    package = root / name
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").write_text(text)
    return package


def test_a_distribution_comes_with_what_it_requires_and_nothing_else(tmp_path: Path) -> None:
    built = build_environment(tmp_path, distributions=["openpyxl"])
    names = sorted(p.name for p in (built.path / "lib").iterdir() if not p.name.endswith(".dist-info"))
    assert names == ["et_xmlfile", "openpyxl"]
    assert list((built.path / "lib" / "openpyxl").rglob("*.pyc"))


def test_requirements_are_followed_by_marker_and_without_extras() -> None:
    closure = requirement_closure(["python-docx", "pdfplumber"])
    assert {"python-docx", "lxml", "typing-extensions", "pdfplumber", "pdfminer-six", "pillow"} <= set(closure)
    assert "pytest" not in closure


def test_the_same_parts_are_found_again_and_other_parts_are_not(tmp_path: Path) -> None:
    package = make_package(tmp_path / "source", "tool", "VALUE = 1\n")
    first = build_environment(tmp_path / "out", packages={"tool": package})
    marker = first.path / "marker"
    marker.touch()
    again = build_environment(tmp_path / "out", packages={"tool": package})
    assert again == first
    assert marker.exists()
    (package / "__init__.py").write_text("VALUE = 2\n")
    changed = build_environment(tmp_path / "out", packages={"tool": package})
    assert changed.digest != first.digest
    assert (changed.path / "lib" / "tool" / "__init__.py").read_text() == "VALUE = 2\n"
    program = build_environment(tmp_path / "out", packages={"tool": package}, programs={"run": "#!/bin/sh\n"})
    assert program.digest != changed.digest


def test_this_program_itself_is_refused_under_any_name(tmp_path: Path) -> None:
    source = Path(environment.__file__).parents[1]
    innocent = make_package(tmp_path, "innocent", "")
    for arguments in (
        {"distributions": ["journeyman"]},
        {"packages": {"journeyman": innocent}},
        {"packages": {"other": source}},
    ):
        with pytest.raises(InputError, match="journeyman itself"):
            build_environment(tmp_path / "out", **arguments)  # type: ignore[arg-type]
    assert not list(tmp_path.glob("out/*"))


def test_what_is_not_installed_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentMissing, match="no-such-distribution"):
        build_environment(tmp_path, distributions=["no-such-distribution"])
    with pytest.raises(InputError, match="does not exist"):
        build_environment(tmp_path, packages={"tool": tmp_path / "none"})


def test_a_build_that_fails_leaves_nothing(tmp_path: Path) -> None:
    package = make_package(tmp_path / "source", "tool", "")
    (package / "loop").symlink_to(package / "missing")
    out = tmp_path / "out"
    with pytest.raises(InputError, match=r"tool/loop"):
        build_environment(out, packages={"tool": package})
    assert list(out.iterdir()) == []
