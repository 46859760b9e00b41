"""The doctor finds what is there, says what is missing with a fix, and works where the heavy parts are absent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import journeyman
from journeyman.cli import machine


def test_here_the_quickstart_can_run_and_every_lack_has_a_fix(run):
    done = run("doctor", "--json")
    document = json.loads(done.out)
    facts = {fact["name"]: fact for fact in document["facts"]}
    assert {"python", "torch", "engine embedded", "sandbox tier", "cpu", "memory", "disk"} <= facts.keys()
    assert document["quickstart_can_run"] is not any(fact["blocks"] for fact in facts.values())
    assert done.code == (0 if document["quickstart_can_run"] else 3)
    assert [name for name, fact in facts.items() if fact["blocks"] and not fact["fix"]] == []


def test_the_last_line_is_the_verdict(run):
    done = run("doctor")
    assert done.out.splitlines()[-1].startswith("the quickstart can")


def test_without_torch_the_doctor_still_answers_and_says_how_to_get_it(tmp_path):
    # Everything that is installed, except torch: its files and its metadata are left out of a folder of links.
    installed = Path(pytest.__file__).parents[1]
    for entry in installed.iterdir():
        if not entry.name.startswith(("torch", "functorch", "__pycache__")):
            (tmp_path / entry.name).symlink_to(entry)
    source = Path(journeyman.__file__).parents[1]
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(source)!r}]\n" + (
        "from journeyman.cli.main import main; sys.exit(main(['doctor', '--json']))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, check=False, timeout=120
    )
    facts = {fact["name"]: fact for fact in json.loads(done.stdout)["facts"]}
    assert done.returncode == 3
    assert facts["torch"]["text"] == "not installed"
    assert facts["torch"]["fix"] == "pip install 'journeyman[train]'"
    assert "missing: torch" in facts["extra [train]"]["text"]
    assert facts["engine embedded"]["status"] == "note"
    assert "sandbox tier" in facts


def test_extras_are_read_from_requirements():
    lines = ["numpy>=1.26", 'torch>=2.9; extra == "train"', "ray>=2 ; python_version > '3.8' and extra == 'scale'"]
    assert machine.extras(lines) == {"train": ["torch"], "scale": ["ray"]}


@pytest.mark.parametrize(
    ("available_kb", "limit", "status"),
    [(8 << 20, "max", "ok"), (2 << 20, "max", "lack"), (8 << 20, str(3 << 30), "lack"), (8 << 20, str(2**63), "ok")],
)
def test_memory_is_what_is_free_within_the_limit_of_the_container(tmp_path, available_kb, limit, status):
    (tmp_path / "meminfo").write_text(f"MemTotal: {16 << 20} kB\nMemAvailable: {available_kb} kB\n")
    (tmp_path / "max").write_text(limit + "\n")
    fact = machine.memory_fact(tmp_path / "meminfo", [tmp_path / "max", tmp_path / "absent"])
    assert fact.status == status
    assert (fact.fix is None) == (status == "ok")


def test_a_system_that_does_not_tell_its_memory_is_a_note(tmp_path):
    assert machine.memory_fact(tmp_path / "absent").status == "note"
