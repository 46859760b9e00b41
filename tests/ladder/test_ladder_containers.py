"""The quickstart in containers: taken where bubblewrap cannot isolate, and good for readers, oracles and verifiers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.ladder import prepare
from journeyman.ladder.oracles import prove
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory
from journeyman.ladder.tier import choose_tier, strict_tier
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.protocol import Provider
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.verify import verify_in_sandbox

CHOOSE = """
from journeyman.errors import EnvironmentMissing
from journeyman.ladder.tier import choose_tier, strict_tier
tier = choose_tier("auto", frozenset())
print(tier.provider.name, *tier.warnings, sep="\\n")
try:
    print(strict_tier(frozenset()).provider.name)
except EnvironmentMissing as error:
    print("refused", error.exit_code, "JOURNEYMAN_SANDBOX=oci" in str(error))
"""


@pytest.fixture(scope="module")
def oci() -> Iterator[Provider]:
    try:
        yield choose_tier("oci", frozenset()).provider
    except EnvironmentMissing as missing:
        pytest.skip(f"provider oci: {missing}")


@pytest.mark.podman
def test_without_bubblewrap_the_quickstart_takes_containers_and_other_commands_refuse(oci: Provider) -> None:
    environment = {**os.environ, "JOURNEYMAN_BWRAP": "/no/such/bwrap"}
    words = [sys.executable, "-W", "error", "-c", CHOOSE]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    name, why, *promises, refused = done.stdout.splitlines()
    assert name == "oci"
    assert why.startswith("sandbox tier bwrap does not work here: ")
    assert not any("ISOLATES NOTHING" in line for line in promises)
    assert refused == "refused 3 True"


@pytest.mark.podman
def test_a_variable_names_the_tier_of_commands_that_do_not_fall_back(
    oci: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_SANDBOX", "oci")
    assert strict_tier(frozenset()).provider.name == "oci"
    monkeypatch.setenv("JOURNEYMAN_SANDBOX", "none")
    with pytest.raises(InputError, match="does not isolate"):
        strict_tier(frozenset())


@pytest.mark.podman
@pytest.mark.slow
def test_in_containers_documents_are_read_oracles_proven_and_deliverables_graded(
    oci: Provider, tmp_path: Path, recipe_at: Callable[..., QuickstartRecipe]
) -> None:
    recipe = recipe_at(tmp_path / "run").model_copy(
        update={"sandbox": QuickstartRecipe().sandbox.model_copy(update={"provider": "oci"})}
    )
    workshop = Workshop(RunDirectory(tmp_path / "run", recipe))
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
    assert oci.list(workshop.label) == []
    workshop.run.close()
