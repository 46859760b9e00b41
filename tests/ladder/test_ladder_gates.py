"""Each gate and each check of the seven steps can fail, alone; and a run stops at the first step that does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from journeyman.evals.score import Difference
from journeyman.ladder import judgement
from journeyman.ladder.judgement import Judgement
from journeyman.ladder.quickstart import STEP_NAMES
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.tokens.gap import Gap

RECIPE = QuickstartRecipe()
GATES = RECIPE.gates

Facts = dict[str, Any]


def gain(low: float | None = 0.05, kind: str = "pass@1") -> Difference:
    value = None if low is None else low + 0.1
    high = None if low is None else low + 0.2
    return Difference(
        kind=kind, a="warm start", b="trained", value=value, low=low, high=high, n_tasks=40, n_worlds=20, word="tie"
    )


def trial(outcome: str = "passed", reward: float | None = 1.0) -> Facts:
    return {"outcome": outcome, "reward": reward}


def rl_step(**changes: Any) -> Facts:
    facts = {"mean_reward": 0.8, "entropy": 0.5, "n_trials": 256, "n_graded": 256, "gap_mean": 1e-6}
    return {**facts, **changes}


GAP = Gap(mean=1e-6, max=1e-4, q99=1e-5, n=1000)
PROOF = {
    "n_tasks": 20,
    "n_oracles_scoring_1": 20,
    "n_controls": 80,
    "n_controls_failing": 80,
    "n_verifier_errors": 0,
    "fewest_controls_of_a_task": 4,
}

HOLDS: Mapping[str, Facts] = {
    "environment": {
        "recipe": RECIPE,
        "base": {"final_loss": 0.001},
        "greedy": {"toolbelt": 0.97, "react": 0.95},
        "proof": PROOF,
        "dry": [trial()] * 300 + [trial("failed", 0.0)] * 700,
        "n_usable": 40,
    },
    "tokens": {"gates": GATES, "gap": GAP, "tripped": replace(GAP, mean=0.01), "n_trials": 256, "n_changed": 0},
    "system": {"rows_that_fit": 512, "row_bytes": 1 << 20, "wanted": 256, "n_over_cap": 0, "cap": 4096, "n_batches": 9},
    "overfit": {"gates": GATES, "gain": gain(kind="mean_reward")},
    "ablate": {"gates": GATES, "records": [{"max_step_gap": 1e-6}] * 4, "n_arms": 4, "n_aggregations": 2},
    "train": {"recipe": RECIPE, "records": [rl_step()] * 6, "pass_k": (0.2, 0.9), "gain": gain()},
    "transfer": {"gates": GATES, "second": ("react", gain()), "trained_under": ("toolbelt", gain())},
}
"""For each step, records with which everything holds."""

FAILS: list[tuple[str, str, Facts]] = [
    # step, the metric that must fail alone, what changes
    ("environment", "system error rate", {"dry": [trial()] * 990 + [trial("system_error", None)] * 10}),
    ("environment", "system error rate", {"dry": [trial()] * 980 + [trial("verifier_error", None)] * 20}),
    ("environment", "oracles that do not", {"proof": {**PROOF, "n_oracles_scoring_1": 19}}),
    ("environment", "negative controls that pass", {"proof": {**PROOF, "n_controls_failing": 79}}),
    ("environment", "proofs that the verifier broke on", {"proof": {**PROOF, "n_verifier_errors": 1}}),
    ("environment", "fewest negative controls", {"proof": {**PROOF, "fewest_controls_of_a_task": 2}}),
    ("environment", "held-out loss", {"base": {"final_loss": RECIPE.sft.max_final_loss}}),
    ("environment", "held-out loss", {"base": {"final_loss": None}}),
    ("environment", "greedy mean reward", {"greedy": {"toolbelt": 0.97, "react": 0.89}}),
    ("environment", "dry-run mean reward", {"dry": [trial("passed", 0.05)] * 300}),
    ("environment", "tasks with reward variance", {"n_usable": RECIPE.rl.tasks_per_step - 1}),
    ("tokens", "mean abs logprob gap", {"gap": replace(GAP, mean=GATES.max_logprob_gap)}),
    ("tokens", "99 % quantile", {"gap": replace(GAP, q99=GATES.max_logprob_gap_q99)}),
    ("tokens", "sampled turns whose ids differ", {"n_changed": 1}),
    ("tokens", "mean gap after moving one weight", {"tripped": GAP}),
    ("system", "KV slots per wanted trial", {"rows_that_fit": 255}),
    ("system", "micro-batches over the token cap", {"n_over_cap": 1}),
    ("overfit", "low end of the gain in mean reward", {"gain": gain(0.0, "mean_reward")}),
    ("overfit", "low end of the gain in mean reward", {"gain": gain(None, "mean_reward")}),
    ("ablate", "arms measured", {"records": [{"max_step_gap": 1e-6}] * 3}),
    ("ablate", "largest mean logprob gap", {"records": [{"max_step_gap": g} for g in (1e-6, 1e-3, 1e-6, 1e-6)]}),
    ("train", "mean train reward of the last 3", {"records": [rl_step()] * 3 + [rl_step(mean_reward=0.69)] * 3}),
    ("train", "largest mean logprob gap", {"records": [rl_step(gap_mean=1e-3), *[rl_step()] * 5]}),
    ("train", "share of trials without a valid reward", {"records": [rl_step(n_graded=250)] * 6}),
    ("train", "collapse", {"records": [*[rl_step()] * 5, rl_step(entropy=0.04)], "pass_k": (0.5, 0.4)}),
    ("train", "low end of the gain in dev", {"gain": gain(-0.01)}),
    ("train", "low end of the gain in dev", {"gain": gain(None)}),
    ("transfer", "low end of the gain in test pass@1 under react", {"second": ("react", gain(0.0))}),
    ("transfer", "low end of the gain in test pass@1 under react", {"second": ("react", gain(None))}),
    ("transfer", "low end of the gain in test pass@1 under toolbelt", {"trained_under": ("toolbelt", gain(-0.2))}),
]


def judge(step: str, **changes: Any) -> Judgement:
    function: Callable[..., Judgement] = getattr(judgement, step)
    return function(**{**HOLDS[step], **changes})


def conditions(judged: Judgement) -> dict[str, bool | None]:
    return {gate.metric: gate.passed for gate in (judged.gate, *judged.checks)}


@pytest.mark.parametrize("step", STEP_NAMES)
def test_a_step_passes_when_everything_holds(step: str) -> None:
    judged = judge(step)
    assert judged.status == "passed"
    assert all(conditions(judged).values())


@pytest.mark.parametrize(("step", "metric", "changes"), FAILS)
def test_a_gate_or_check_beyond_its_threshold_fails_the_step_alone(step: str, metric: str, changes: Facts) -> None:
    judged = judge(step, **changes)
    assert judged.status == "failed"
    (failed,) = [name for name, passed in conditions(judged).items() if not passed]
    assert failed.startswith(metric)


def test_there_is_a_failure_for_every_gate_and_check() -> None:
    every = {(step, name) for step in STEP_NAMES for name in conditions(judge(step))}
    shown = {(step, name) for step, name in every for s, metric, _ in FAILS if s == step and name.startswith(metric)}
    assert every - shown == set()
    assert len(every) == 25


def test_a_policy_that_became_certain_and_better_has_not_collapsed() -> None:
    records = [*[rl_step()] * 5, rl_step(entropy=0.01)]
    assert judge("train", records=records, pass_k=(0.4, 0.9)).status == "passed"


SMALL = {
    "worlds": {
        "sft_worlds": 4,
        "sft_heldout_worlds": 1,
        "train_worlds": 2,
        "max_train_worlds": 2,
        "dev_worlds": 2,
        "test_worlds": 2,
    },
    "sft": {
        "max_steps": 2,
        "restart_by": 1,
        "warmup_steps": 0,
        "check_every": 1,
        "decay_steps": 1,
        "heldout_traces": 2,
    },
    "warm_start": {"worlds": 2, "steps": 2, "max_tries": 1, "min_dry_run": 0.0},
    "rl": {"tasks_per_step": 2, "trials_per_task": 2},
    "engine": {"max_context": 192, "max_new_tokens": 8},
}


@pytest.mark.thorough
def test_a_run_stops_at_the_first_step_that_fails_reports_it_and_exits_with_1(tmp_path: Path) -> None:
    tables = [
        f"[{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in table.items())
        for name, table in {**SMALL, "sft": {**SMALL["sft"], "max_final_loss": 1e-9}}.items()
    ]
    (tmp_path / "small.toml").write_text("\n".join(tables))
    command = [sys.executable, "-m", "journeyman.cli.main", "quickstart", "--out", "run", "@", "small.toml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 1, done.stderr
    assert "step 1 environment failed: " in done.stderr
    assert "held-out loss of the clean base is " in done.stderr
    assert "needed < 1e-09" in done.stderr
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["status"] == "failed"
    assert [(step["name"], step["status"]) for step in report["steps"]] == [("environment", "failed")]
    assert "step 2 tokens" not in done.stderr
    assert (tmp_path / "run" / "report.html").is_file()
    assert not (tmp_path / "run" / "state" / "step-1-environment.json").exists()  # judged anew by the next command
