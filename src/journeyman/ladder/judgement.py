"""The seven gates as pure functions of records: what a step measured goes in, its gate and its checks come out.

Nothing is measured or decided elsewhere: a step passes when its gate and every check hold, and a figure that could not
be measured holds nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from journeyman.evals.proportion import wilson
from journeyman.evals.score import Difference
from journeyman.ladder.recipe import GatesSection, QuickstartRecipe
from journeyman.ladder.report.figures import Gate
from journeyman.ladder.summaries import Summary
from journeyman.tokens.gap import Gap

SYSTEM_CLASSES = frozenset({"system_error", "verifier_error"})
MIN_CONTROLS = 3
LAST_STEPS = 3
"""RL steps whose mean reward judges step 6."""


@dataclass(frozen=True)
class Judgement:
    """A step's gate and checks, judged."""

    gate: Gate
    checks: tuple[Gate, ...] = ()

    @property
    def status(self) -> Literal["passed", "failed"]:
        return "passed" if all(gate.passed for gate in (self.gate, *self.checks)) else "failed"


def mean_reward(summaries: Sequence[Summary]) -> float:
    """Mean of the valid rewards; 0 without any."""
    rewards = [s["reward"] for s in summaries if s["reward"] is not None]
    return float(sum(rewards) / max(1, len(rewards)))


def environment(
    recipe: QuickstartRecipe,
    base: Mapping[str, Any],
    greedy: Mapping[str, float],
    proof: Mapping[str, Any],
    dry: Sequence[Summary],
    n_usable: int,
) -> Judgement:
    """Step 1.

    Args:
        recipe: thresholds.
        base: record of the base SFT.
        greedy: mean reward of the clean base by harness, greedy on ``dev``.
        proof: what ``oracles.prove`` counted.
        dry: the dry run's trials, at least one.
        n_usable: training tasks with reward variance.
    """
    n_broken = sum(s["outcome"] in SYSTEM_CLASSES for s in dry)
    low, high = wilson(n_broken / len(dry), len(dry))
    rate = Gate.of(
        "system error rate of the dry run",
        n_broken / len(dry),
        "<",
        recipe.gates.max_system_error_rate,
        detail=f"{n_broken} of {len(dry)} trials, 95 % Wilson [{low:.4f}, {high:.4f}]",
    )
    unproven = proof["n_tasks"] - proof["n_oracles_scoring_1"]
    passing = proof["n_controls"] - proof["n_controls_failing"]
    checks = (
        Gate.of("oracles that do not score 1", unproven, "==", 0, detail=f"{proof['n_tasks']} executed in sandboxes"),
        Gate.of("negative controls that pass", passing, "==", 0, detail=f"{proof['n_controls']} graded"),
        Gate.of("proofs that the verifier broke on", proof["n_verifier_errors"], "==", 0),
        Gate.of("fewest negative controls of a task", proof["fewest_controls_of_a_task"], ">=", MIN_CONTROLS),
        Gate.of("held-out loss of the clean base", base["final_loss"], "<", recipe.sft.max_final_loss),
        Gate.of("greedy mean reward of the clean base", min(greedy.values()), ">=", recipe.sft.min_greedy),
        Gate.of("dry-run mean reward", mean_reward(dry), ">=", recipe.warm_start.min_dry_run),
        Gate.of("tasks with reward variance", n_usable, ">=", recipe.rl.tasks_per_step),
    )
    return Judgement(rate, checks)


def tokens(gates: GatesSection, gap: Gap, tripped: Gap, n_trials: int, n_changed: int) -> Judgement:
    """Step 2.

    Args:
        gates: thresholds.
        gap: engine against trainer.
        tripped: the same after one weight was moved by hand.
        n_trials: whose tokens were compared.
        n_changed: trials whose ids differ in the trainer's rows.
    """
    gate = Gate.of(
        "mean abs logprob gap, engine against trainer, fp32",
        gap.mean,
        "<",
        gates.max_logprob_gap,
        detail=f"{gap.n} sampled tokens of {n_trials} trials; max {gap.max:.2e}",
    )
    checks = (
        Gate.of("99 % quantile of the abs logprob gap", gap.q99, "<", gates.max_logprob_gap_q99),
        Gate.of("sampled turns whose ids differ in the trainer's rows", n_changed, "==", 0),
        Gate.of(
            "mean gap after moving one weight by hand",
            tripped.mean,
            ">=",
            gates.max_logprob_gap,
            detail="the alarm must ring: a gate that cannot fail is not a gate",
        ),
    )
    return Judgement(gate, checks)


def system(rows_that_fit: int, row_bytes: int, wanted: int, n_over_cap: int, cap: int, n_batches: int) -> Judgement:
    """Step 3.

    Args:
        rows_that_fit: KV rows of ``row_bytes`` in the memory that the recipe grants.
        row_bytes: of one trial at full context.
        wanted: trials that one step samples.
        n_over_cap: micro-batches above ``cap`` tokens that could have been split.
        cap: token budget of a micro-batch.
        n_batches: micro-batches of a step.
    """
    gate = Gate.of(
        "KV slots per wanted trial",
        rows_that_fit / wanted,
        ">=",
        1.0,
        detail=f"{rows_that_fit} rows of {row_bytes} bytes fit; (S + 1) x groups x trials = {wanted}",
    )
    check = Gate.of("micro-batches over the token cap", n_over_cap, "==", 0, detail=f"cap {cap}, {n_batches} a step")
    return Judgement(gate, (check,))


def overfit(gates: GatesSection, gain: Difference) -> Judgement:
    """Step 4: the paired gain in mean reward over the chosen tasks, against a baseline sampled afresh."""
    detail = f"{_signed(gain.value)}, {gain.interval}, {gain.n_tasks} tasks"
    gate = Gate.of("low end of the gain in mean reward", gain.low, ">", gates.min_overfit_gain, detail=detail)
    return Judgement(gate)


def ablate(gates: GatesSection, records: Sequence[Mapping[str, Any]], n_arms: int, n_aggregations: int) -> Judgement:
    """Step 5: whether every arm was measured, by the same model on both sides. Which arm won decides nothing."""
    gate = Gate.of("arms measured", len(records), "==", n_arms, detail=f"{n_aggregations} aggregations x seeds")
    worst = max((record["max_step_gap"] for record in records), default=None)
    return Judgement(gate, (Gate.of("largest mean logprob gap of any step", worst, "<", gates.max_logprob_gap),))


def train(
    recipe: QuickstartRecipe, records: Sequence[Mapping[str, Any]], pass_k: tuple[float, float], gain: Difference
) -> Judgement:
    """Step 6.

    Args:
        recipe: thresholds, and k.
        records: of the RL steps, at least one.
        pass_k: pass@k on ``dev`` before and after.
        gain: in pass@1 on ``dev``.
    """
    gates, k, last = recipe.gates, recipe.evaluation.samples, records[-LAST_STEPS:]
    entropies = [r["entropy"] for r in records]
    collapsed = entropies[-1] < 0.1 * entropies[0] and pass_k[1] < pass_k[0]
    n_trials = sum(r["n_trials"] for r in records)
    n_broken = sum(r["n_trials"] - r["n_graded"] for r in records)
    gate = Gate.of(
        f"mean train reward of the last {len(last)} steps",
        sum(r["mean_reward"] for r in last) / len(last),
        ">",
        gates.min_final_reward,
        detail=f"from {records[0]['mean_reward']:.3f} in step 1, {records[0]['n_trials']} trials a step",
    )
    worst = max(r["gap_mean"] for r in records)
    checks = (
        Gate.of("largest mean logprob gap of any step", worst, "<", gates.max_logprob_gap),
        Gate.of("share of trials without a valid reward", n_broken / n_trials, "<", gates.max_system_error_rate),
        Gate.of(
            "collapse: entropy below a tenth of its start while pass@k fell",
            float(collapsed),
            "==",
            0,
            detail=f"entropy {entropies[0]:.3f} -> {entropies[-1]:.3f}; pass@{k} {pass_k[0]:.3f} -> {pass_k[1]:.3f}",
        ),
        Gate.of(
            "low end of the gain in dev pass@1",
            gain.low,
            ">",
            gates.min_dev_gain,
            detail=f"{_signed(gain.value)} over {gain.n_tasks} dev tasks",
        ),
    )
    return Judgement(gate, checks)


def transfer(gates: GatesSection, second: tuple[str, Difference], trained_under: tuple[str, Difference]) -> Judgement:
    """Step 7: the gain in pass@1 on ``test`` under the harness that RL never saw; the check is the other one."""

    def gate(harness: str, gain: Difference) -> Gate:
        return Gate.of(
            f"low end of the gain in test pass@1 under {harness}",
            gain.low,
            ">",
            gates.min_test_gain,
            detail=f"{_signed(gain.value)}, {gain.interval}, {gain.n_tasks} tasks in {gain.n_worlds} worlds",
        )

    return Judgement(gate(*second), (gate(*trained_under),))


def _signed(value: float | None) -> str:
    return "not measurable" if value is None else f"{value:+.3f}"
