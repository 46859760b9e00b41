"""The commands as an agent meets them: real processes, laid out as in its environment."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import journeyman.documents
from journeyman.documents import calc, lookup, read
from journeyman.documents.commands import COMMANDS, PACKAGE
from journeyman.documents.serve import encode

CSV = b"Client,Q1,Q2\nAcme,412,377\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``bin`` and ``lib`` as in an agent's environment, and ``bin/python3`` of this test."""
    root = tmp_path_factory.mktemp("agent")
    (root / "bin").mkdir()
    for name, text in COMMANDS.items():
        path = root / "bin" / name
        path.write_text(text)
        path.chmod(0o755)
    (root / "bin" / "python3").symlink_to(sys.executable)
    source = Path(journeyman.documents.__file__).parent
    shutil.copytree(source, root / "lib" / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def run(root: Path, cwd: Path, *argv: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": f"{root}/bin:/usr/bin:/bin", "LOGS_DIR": str(cwd / "logs")}
    return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, timeout=30)


def test_lookup_calc_and_answer_work_as_programs(root: Path, tmp_path: Path) -> None:
    (tmp_path / "sales.csv").write_bytes(CSV)
    assert run(root, tmp_path, "lookup", "sales.csv", "Acme", "Q1").stdout == "412\n"
    assert run(root, tmp_path, "calc", "412+377").stdout == "789\n"
    assert run(root, tmp_path, "answer", "412;377").returncode == 0
    assert json.loads((tmp_path / "logs/artifacts/answer.json").read_text()) == {"answer": "412;377"}
    assert not list(root.rglob("__pycache__"))


@pytest.mark.parametrize("text", ['say "hi"', "a\\b", "ü\n", ""])
def test_any_text_can_be_answered(root: Path, tmp_path: Path, text: str) -> None:
    assert run(root, tmp_path, "answer", text).returncode == 0
    assert json.loads((tmp_path / "logs/artifacts/answer.json").read_text(encoding="utf-8")) == {"answer": text}


def test_an_answer_that_cannot_be_written_says_so(root: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    result = run(root, tmp_path, "answer", "412")
    assert result.returncode == 1
    assert result.stderr == f"error: cannot write {tmp_path}/logs/artifacts/answer.json: Not a directory\n"


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["lookup", "none.csv", "Acme", "Q1"], "error: no such file\n"),
        (["lookup", "sales.csv", "Nobody", "Q1"], "error: no such row\n"),
        (["lookup", "sales.csv", "Acme", "Q9"], "error: no such cell\n"),
        (["lookup", "bad.csv", "Acme", "Q1"], "error: unreadable file: not text in UTF-8, UTF-16 or Windows-1252\n"),
        (["calc", "1/2"], "error: bad expression: unexpected '/' at 2\n"),
        (["lookup", "sales.csv"], "usage: lookup PATH ROW [COL]\n"),
        (["calc"], "usage: calc EXPR\n"),
        (["answer"], "usage: answer TEXT\n"),
    ],
)
def test_a_command_that_cannot_serve_says_why_and_fails(
    root: Path, tmp_path: Path, argv: list[str], message: str
) -> None:
    (tmp_path / "sales.csv").write_bytes(CSV)
    (tmp_path / "bad.csv").write_bytes(b"\0\1")
    result = run(root, tmp_path, *argv)
    assert (result.stdout, result.stderr) == ("", message)
    assert result.returncode == (2 if message.startswith("usage") else 1)


def test_lookup_takes_the_cached_tree_of_these_very_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, cache = tmp_path / "sales.csv", tmp_path / "cache"
    file.write_bytes(CSV)
    cache.mkdir()
    tree = {"format": "csv", "tables": [{"header": ["Client", "Q1"], "rows": [["Acme", "from cache"]]}], "text": ""}
    (cache / f"{sha256(CSV).hexdigest()}.json").write_text(json.dumps(tree))
    assert lookup.main([str(file), "Acme", "Q1"], cache=str(cache)) == 0
    file.write_bytes(CSV.replace(b"412", b"413"))
    assert lookup.main([str(file), "Acme", "Q1"], cache=str(cache)) == 0
    assert capsys.readouterr().out == "from cache\n413\n"


def test_a_document_cached_as_unreadable_stays_unreadable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    (tmp_path / f"{sha256(CSV).hexdigest()}.json").write_text('{"unreadable": "damaged"}')
    assert lookup.main([str(tmp_path / "a.csv"), "Acme", "Q1"], cache=str(tmp_path)) == 1
    assert capsys.readouterr().err == "error: unreadable file: damaged\n"


def test_a_lookup_in_the_cache_imports_neither_json_nor_a_reader(root: Path, tmp_path: Path) -> None:
    tree = read(CSV, "sales.csv")
    tree["text"] = 'quotes " back\\slash ü \n'
    (tmp_path / "sales.csv").write_bytes(CSV)
    (tmp_path / f"{sha256(CSV).hexdigest()}.json").write_bytes(encode(tree))
    program = (
        f"import sys; sys.path.insert(0, {str(root / 'lib')!r}); from officedocs import lookup, calc\n"
        f"lookup.main(['sales.csv', 'Acme', 'Q2'], {str(tmp_path)!r})\n"
        "print(sorted({'json', 'typing', 're', 'hashlib', 'openpyxl', 'docx', 'pdfplumber'} & set(sys.modules)))"
    )
    argv = [sys.executable, "-I", "-S", "-c", program]
    result = subprocess.run(argv, capture_output=True, text=True, timeout=30, cwd=tmp_path)
    assert result.stdout == "377\n[]\n", result.stderr


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("412+377", "789"),
        ("1-2*3", "-5"),
        ("(1-2)*3", "-3"),
        ("1.50*2", "3"),
        ("0.1+0.2", "0.3"),
        ("-(2)*-3", "6"),
        (" 7 ", "7"),
        ("007", "7"),
        ("0.00-0", "0"),
        ("-0.5", "-0.5"),
    ],
)
def test_calc_is_exact(expression: str, value: str) -> None:
    assert calc.evaluate(expression) == value


@given(st.integers(-(10**9), 10**9), st.integers(-(10**9), 10**9), st.integers(0, 10**9))
def test_calc_agrees_with_integer_arithmetic(a: int, b: int, c: int) -> None:
    assert calc.evaluate(f"({a})+({b})*{c}-{c}") == str(a + b * c - c)


@pytest.mark.parametrize(
    "expression",
    [
        "",
        " ",
        "1+",
        "+",
        "1 2",
        "1/2",
        "2**3",
        "a",
        "1e5",
        "__import__('os')",
        "(1",
        "1)",
        "1.",
        ".5",
        "1.2.3",
        "²",
        "٣",
    ],
)
def test_calc_refuses_everything_else(expression: str) -> None:
    with pytest.raises(calc.BadExpression):
        calc.evaluate(expression)


@pytest.mark.parametrize("expression", ["(" * 150 + "1", "-" * 199 + "1", "9*" * 100 + "9"])
def test_calc_is_bounded(expression: str) -> None:
    with pytest.raises(calc.BadExpression):
        calc.evaluate(expression)


@given(st.text(max_size=30))
def test_calc_never_raises_anything_else(expression: str) -> None:
    with contextlib.suppress(calc.BadExpression):
        assert calc.evaluate(expression).lstrip("-")[0].isdigit()
