"""Small files with one noun each: sizes, names, docstrings, annotations, and tests that are plain functions."""

from __future__ import annotations

import ast
import statistics
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

MAX_FILE_LINES = 400
MAX_MEDIAN_FILE_LINES = 150
MAX_FUNCTION_LINES = 80
FORBIDDEN_MODULES = {"util", "utils", "helper", "helpers", "manager", "managers", "common", "misc", "core", "base"}
FORBIDDEN_CLASS_WORDS = ("Manager", "Handler", "Processor", "Util", "Helper", "Common", "Misc")


def test_files_are_short(modules, root):
    lengths = {p: len((root / "src/journeyman" / p).read_text(encoding="utf-8").splitlines()) for p in modules}
    assert not {path: n for path, n in lengths.items() if n > MAX_FILE_LINES}
    assert statistics.median(n for n in lengths.values() if n > 3) <= MAX_MEDIAN_FILE_LINES


def test_functions_are_short_and_say_what_they_return(modules):
    wrong = [line for path, tree in modules.items() for line in function_findings(path, tree)]
    assert not wrong, "\n".join(wrong)


def test_a_long_or_unannotated_function_is_found():
    long = "def f() -> int:\n" + "    x = 1\n" * MAX_FUNCTION_LINES + "    return x\n"
    assert len(list(function_findings("x.py", ast.parse(long)))) == 1
    assert len(list(function_findings("x.py", ast.parse("class A:\n    def f(self): pass\n")))) == 1
    assert not list(function_findings("x.py", ast.parse("class A:\n    def __init__(self, a: int): pass\n")))


def test_every_module_says_what_it_is_for(modules):
    silent = [path for path, tree in modules.items() if not ast.get_docstring(tree) and tree.body]
    assert not silent
    rooms_without_promise = [
        path for path, tree in modules.items() if path.count("/") == 1 and "__init__" in path and not tree.body
    ]
    assert not rooms_without_promise


def test_names_are_nouns_of_the_field_not_drawers(modules):
    wrong = [line for path, tree in modules.items() for line in name_findings(path, tree)]
    assert not wrong, "\n".join(wrong)


def test_a_drawer_is_found():
    assert list(name_findings("train/utils.py", ast.parse("")))
    assert list(name_findings("train/helpers/x.py", ast.parse("")))
    assert list(name_findings("train/x.py", ast.parse("class RunManager: pass")))
    assert not list(name_findings("train/x.py", ast.parse("class StalenessGate: pass")))


def test_tests_are_plain_functions_with_unique_file_names_and_no_mock_library(root):
    files = sorted((root / "tests").rglob("*.py"))
    wrong = [line for path in files for line in findings_in_test(path, ast.parse(path.read_text(encoding="utf-8")))]
    names = Counter(path.name for path in files if path.name != "conftest.py")
    wrong += [f"{name} occurs {count} times; pytest needs unique names" for name, count in names.items() if count > 1]
    assert not wrong, "\n".join(wrong)


def test_a_test_class_or_a_mock_is_found():
    assert list(findings_in_test(Path("test_x.py"), ast.parse("class TestX: pass")))
    assert list(findings_in_test(Path("test_x.py"), ast.parse("from unittest import mock")))
    assert list(findings_in_test(Path("__init__.py"), ast.parse("")))
    assert list(findings_in_test(Path("test_x.py"), ast.parse("from conftest import small_recipe")))


def function_findings(path: str, tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            where, length = f"src/journeyman/{path}:{node.lineno} {node.name}", (node.end_lineno or 0) - node.lineno + 1
            if length > MAX_FUNCTION_LINES:
                yield f"{where} has {length} lines"
            if node.returns is None and node.name != "__init__":
                yield f"{where} does not say what it returns"


def name_findings(path: str, tree: ast.AST) -> Iterator[str]:
    drawers = FORBIDDEN_MODULES & set(path.removesuffix(".py").split("/"))
    if drawers:
        yield f"src/journeyman/{path}: {', '.join(drawers)} is a drawer, not a noun"
    for node in ast.walk(tree):
        is_public_class = isinstance(node, ast.ClassDef) and not node.name.startswith("_")
        if is_public_class and any(word in node.name for word in FORBIDDEN_CLASS_WORDS):
            yield f"src/journeyman/{path}:{node.lineno} class {node.name} says what it does in general"


def findings_in_test(path: Path, tree: ast.AST) -> Iterator[str]:
    if path.name == "__init__.py":
        yield f"{path}: tests need no packages"
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            yield f"{path}:{node.lineno} class {node.name}: tests are plain functions"
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
        source = getattr(node, "module", None) or ""
        if any(word in ("unittest.mock", "mock", "pytest_mock") for word in (*names, source)):
            yield f"{path}:{node.lineno} imports a mock library; where one is needed the seam is missing"
        if "conftest" in (*names, source):
            yield f"{path}:{node.lineno} imports conftest, of which there are several; use a fixture or a named module"
