"""Hosts that cannot isolate: the quickstart falls back to provider ``none`` and says so, nobody else does."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.ladder import prepare
from journeyman.ladder.oracles import prove
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.tier import LIMITS, choose_tier
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.protocol import CAPABILITIES
from journeyman.sandbox.reaper import traces
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verify import verify_in_sandbox

CANNOT_ISOLATE = """#!/bin/sh
# Answers like a new bubblewrap on a host without user namespaces.
case "$1" in
--version) echo "bubblewrap 0.11.0"; exit 0 ;;
--help) echo "--args --as-pid-1 --clearenv --disable-userns --overlay-src --perms --seccomp"
  echo "--size --tmp-overlay"; exit 0 ;;
esac
echo "bwrap: No permissions to create a new namespace" >&2
exit 1
"""

CHOOSE = """
import sys
from journeyman.errors import EnvironmentMissing
from journeyman.ladder.tier import choose_tier
try:
    tier = choose_tier(sys.argv[1], frozenset())
    print(tier.provider.name, *tier.warnings, sep="\\n")
except EnvironmentMissing as error:
    print("refused", error, error.exit_code)
"""


@pytest.fixture(params=["absent", "without namespaces"])
def no_bwrap(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    """The environment of a process on a host without a usable bubblewrap, podman or docker."""
    program = tmp_path / "bwrap"
    if request.param != "absent":
        program.write_text(CANNOT_ISOLATE)
        program.chmod(0o755)
    return {**os.environ, "JOURNEYMAN_BWRAP": str(program), "JOURNEYMAN_OCI": str(tmp_path / "no-podman")}


def choose(wanted: str, environment: dict[str, str]) -> str:
    command = [sys.executable, "-W", "error", "-c", CHOOSE, wanted]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


def test_auto_falls_back_loudly_and_a_named_provider_is_refused(no_bwrap: dict[str, str]) -> None:
    name, why, why_not_oci, loud, *promises = choose("auto", no_bwrap).splitlines()
    assert name == "none"
    assert why.startswith("sandbox tier bwrap does not work here: ")
    assert why_not_oci.startswith("sandbox tier oci does not work here: ")
    assert "ISOLATES NOTHING" in loud
    assert {line.split(": ")[1].split()[0] for line in promises} >= {"files", "network", "privileges", "processes"}
    refused = choose("bwrap", no_bwrap)
    assert refused.startswith("refused ")
    assert refused.endswith(" 3\n")


def test_the_doctor_names_what_is_lacking_and_says_that_the_quickstart_can_run(no_bwrap: dict[str, str]) -> None:
    command = [sys.executable, "-m", "journeyman.cli.main", "doctor"]
    done = subprocess.run(command, env=no_bwrap, capture_output=True, text=True, timeout=120, check=False)
    lacks = [line for line in done.stdout.splitlines() if line.startswith("LACK  sandbox")]
    assert any(line.split()[3] == "none:" for line in lacks)
    assert any("commands are not isolated at all" in line for line in lacks)
    assert done.returncode in (0, 3)  # 3 where something else is missing too
    if done.returncode == 0:
        assert "can run here, without what is marked LACK" in done.stdout.splitlines()[-1]


@pytest.mark.thorough
def test_without_isolation_documents_are_read_and_oracles_proven_and_nothing_stays_behind(
    tmp_path: Path, recipe_at: Callable[..., QuickstartRecipe]
) -> None:
    recipe = recipe_at(tmp_path / "run").model_copy(
        update={"sandbox": QuickstartRecipe().sandbox.model_copy(update={"provider": "none"})}
    )
    workshop = Workshop(RunDirectory(tmp_path / "run", recipe))
    assert workshop.provider.name == "none"
    assert any("ISOLATES NOTHING" in line for line in workshop.warnings)
    prepare.make_tasks(workshop)
    tasks = workshop.tasks("dev")
    assert prepare.fill_reads(workshop, tasks) == 5 * len({task.world_id for task in tasks})
    proof = prove(workshop, tasks)
    assert (proof["n_oracles_scoring_1"], proof["n_broken"], proof["n_verifier_errors"]) == (len(tasks), 0, 0)
    assert proof["n_controls_failing"] == proof["n_controls"] > 0
    right = {"answer.json": (tasks[0].path / "tests" / "truth.json").read_bytes()}
    single = verify_in_sandbox(tasks[0], right, workshop.provider, workshop.environment, label=workshop.label)
    assert (single.kind, single.reward) == ("scored", 1.0)
    with workshop.verifier() as verifier:
        assert verifier.grade([GradeItem("t", tasks[0], right)])[0].reward == 1.0
    assert traces(workshop.label) == {}
    assert not Path("/tmp/logs").exists()
    workshop.run.close()


def test_a_tier_waives_exactly_the_limits_that_are_missing_and_warns_of_each() -> None:
    tier = choose_tier("none", frozenset())
    missing = set(CAPABILITIES) - tier.provider.supports
    assert tier.waive == missing & set(LIMITS)
    assert len(tier.warnings) == len(missing) + 1
