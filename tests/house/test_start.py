"""The command line starts fast and light: help needs none of the libraries that the work needs."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

from journeyman.cli.main import VERBS

MAX_HELP_CPU_S = 0.4
"""Of the 0.5 s that help may take in all. CPU time, because the wall clock also counts what else the machine does."""
HEAVY = (
    *("torch", "transformers", "tokenizers", "numpy", "scipy", "statsmodels", "pydantic", "rich", "jinja2", "asyncio"),
    *("openpyxl", "docx", "pdfplumber", "reportlab", "xlsxwriter", "hypothesis", "pytest"),
)
ASK = """
import sys
from journeyman.cli.main import main
code = main(sys.argv[1:])
print("loaded", sorted(set({heavy!r}) & set(sys.modules)), code, file=sys.stderr)
"""


def loaded_by(*words: str) -> str:
    script = ASK.format(heavy=HEAVY)
    done = subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",), *((verb, "--help") for verb in VERBS)])
def test_help_and_version_load_no_heavy_library(words):
    assert loaded_by(*words).startswith("loaded [] ")


def test_the_measurement_sees_a_library_that_was_loaded():
    assert "pydantic" in loaded_by("config", "schema")


def test_help_takes_less_than_half_a_second():
    best_s = min(_cpu_seconds([sys.executable, "-m", "journeyman.cli.main", "--help"]) for _ in range(5))
    assert best_s < MAX_HELP_CPU_S


def _cpu_seconds(command: list[str]) -> float:
    """User and system time of one child that starts no others and no namespace, so that rusage sees all of it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
