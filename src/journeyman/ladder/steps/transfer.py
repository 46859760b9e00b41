"""Step 7, transfer: worlds nobody has seen, and a second harness that RL never saw. The only step that opens ``test``.

Four models under two harnesses: fresh, clean base, warm start and trained. The gate is the gain under the second
harness: an interval above 0, else the report says that the gain does not transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass

from journeyman.cores import usable_cores
from journeyman.evals.behaviour import METRICS, behaviour_of
from journeyman.evals.tally import score_of
from journeyman.harness import HARNESSES
from journeyman.ladder import judgement
from journeyman.ladder.bench import ROLES, Bench
from journeyman.ladder.evaluate import Evaluation, record_opening
from journeyman.ladder.profiles import PROFILES
from journeyman.ladder.report.figures import Column, Table
from journeyman.ladder.report.model import Step
from journeyman.ladder.report.sections import BehaviourRow, FamilyRow, Gains, ModelRow, Transfer
from journeyman.ladder.summaries import Summary, behaviour_records, gains, graded_trials, spoken
from journeyman.ladder.workers import Worker

TRAINED_UNDER = "toolbelt"
SECOND = "react"
_APART = (("fresh", TRAINED_UNDER), ("fresh", SECOND), ("clean_base", TRAINED_UNDER))
"""Models and harnesses that are about half of the work: a fresh model runs every trial to its limits."""


@dataclass(frozen=True)
class Findings:
    """What step 7 adds to the report besides its Step."""

    models: tuple[ModelRow, ...]
    transfer: tuple[Transfer, ...]
    families: tuple[FamilyRow, ...]
    behaviour: tuple[BehaviourRow, ...]


def evaluation(bench: Bench, role: str, harness: str, *, greedy: bool = False) -> Evaluation:
    """The test evaluation of one model under one harness."""
    recipe = bench.recipe
    samples, temperature = (1, 0.0) if greedy else (recipe.evaluation.samples, recipe.rl.temperature)
    samples = 1 if role == "fresh" else samples  # it runs every trial to its limits, and the answer is 0
    return Evaluation(role, harness, "test", samples, temperature, "transfer to held-out worlds")


def run_step(bench: Bench) -> tuple[Step, Findings]:
    """Measure the four models under both harnesses on ``test`` and judge the gains."""
    sampled = {(role, harness): evaluation(bench, role, harness) for role in ROLES for harness in HARNESSES}
    greedily = {
        (role, TRAINED_UNDER): evaluation(bench, role, TRAINED_UNDER, greedy=True) for role in ("clean_base", "trained")
    }
    _measure(bench, [*sampled.values(), *greedily.values()])
    results = {key: bench.evaluate(what) for key, what in sampled.items()}
    greedy = {key: bench.evaluate(what) for key, what in greedily.items()}
    models = tuple(_model_row(bench, *key, summaries) for key, summaries in results.items())
    models += tuple(_model_row(bench, *key, summaries, greedy=True) for key, summaries in greedy.items())
    transfer = tuple(
        Transfer(
            harness=harness,
            trained_under=harness == TRAINED_UNDER,
            gains=_gains(bench, results["warm_start", harness], results["trained", harness]),
        )
        for harness in HARNESSES
    )
    before, after = results["warm_start", TRAINED_UNDER], results["trained", TRAINED_UNDER]
    findings = Findings(models, transfer, _families(bench, before, after), _behaviour(before, after))
    step = _report(bench, transfer, after, results["trained", SECOND])
    return step, findings


def _measure(bench: Bench, wanted: Sequence[Evaluation]) -> None:
    """Do the evaluations that are not there yet; a second process takes some where there are a core and memory for it.

    Openings of ``test`` are noted here, before any trial and in one order.
    """
    missing = [what for what in wanted if bench.run.load(f"evaluation-{what.name}") is None]
    tasks = bench.workshop.tasks("test")
    for what in missing:
        record_opening(bench.run, what, tasks)
    apart: list[Evaluation] = []
    if usable_cores() > 1 and not PROFILES[bench.recipe.profile].pretrained:
        apart = [what for what in missing if (what.role, what.harness) in _APART]
    share = {"evaluations": [asdict(what) for what in apart]}
    with Worker(bench.run, "transfer-evaluations", share, job="evaluations") if apart else nullcontext() as second:
        for what in missing:
            if what not in apart:
                bench.evaluate(what, is_recorded=True)
        if second is not None:
            second.result()


def _report(bench: Bench, transfer: tuple[Transfer, ...], after: list[Summary], second: list[Summary]) -> Step:
    by_harness = {t.harness: t.gains.pass_1 for t in transfer}

    judged = judgement.transfer(
        bench.recipe.gates, (SECOND, by_harness[SECOND]), (TRAINED_UNDER, by_harness[TRAINED_UNDER])
    )
    d = by_harness[SECOND]
    shown = bool(judged.gate.passed) and d.low is not None and d.low > 0  # a threshold below 0 judges nothing
    word = "transfers" if shown else "does not transfer" if not judged.gate.passed else "is not shown to transfer"
    summary = f"the gain {word} to the second harness: pass@1 {spoken(d)}"
    bench.say(summary)
    return Step(
        number=7,
        name="transfer",
        status=judged.status,
        gate=judged.gate,
        checks=judged.checks,
        summary=summary,
        evidence={"harness_by_weights": {h: d.model_dump(mode="json") for h, d in by_harness.items()}},
        tables=(_budget_table(bench, "toolbelt", after), _budget_table(bench, SECOND, second)),
        look_at=("evaluations", "openings.json"),
    )


def _budget_table(bench: Bench, harness: str, summaries: list[Summary]) -> Table:
    """Scores had the trial ended after so many turns: read off the same trials, the policy was not told."""
    name = evaluation(bench, "trained", harness).boundary_name
    rows = []
    for limit in range(1, HARNESSES[harness].max_turns + 1):
        cut = [
            s if len(s["turns"]) <= limit else {**s, "reward": 0.0, "passed": False, "outcome": "failed"}
            for s in summaries
        ]
        trials = graded_trials([c if s["reward"] is not None else s for s, c in zip(summaries, cut, strict=True)])
        kinds = [score_of(trials, kind, boundary=name) for kind in ("mean_reward", "pass@1")]
        rows.append((limit, *kinds))
    return Table(
        title=f"Budget curve: trained model under {harness}, by turns allowed",
        columns=(
            Column(name="turns"),
            Column(name="mean reward", kind="mean_reward"),
            Column(name="pass@1", kind="pass@1"),
        ),
        rows=tuple(rows),
        note="the same trials, scored 0 where they took more turns; intervals: t over worlds",
    )


def _model_row(bench: Bench, role: str, harness: str, summaries: list[Summary], *, greedy: bool = False) -> ModelRow:
    what = evaluation(bench, role, harness, greedy=greedy)
    return ModelRow.model_validate(
        {
            "role": role,
            "label": bench.labels[role],
            "harness": harness,
            "decoding": what.decoding,
            "scores": bench.scores(what, summaries),
        }
    )


def _gains(bench: Bench, before: list[Summary], after: list[Summary]) -> Gains:
    recipe = bench.recipe
    return gains(before, after, a="warm start", b="trained", confidence=recipe.evaluation.confidence, seed=recipe.seed)


def _families(bench: Bench, before: list[Summary], after: list[Summary]) -> tuple[FamilyRow, ...]:
    rows = []
    for family in sorted({s["family"] for s in before}):
        first, second = ([s for s in side if s["family"] == family] for side in (before, after))
        rows.append(
            FamilyRow(
                family=family,
                before=bench.scores(evaluation(bench, "warm_start", TRAINED_UNDER), first),
                after=bench.scores(evaluation(bench, "trained", TRAINED_UNDER), second),
                gains=_gains(bench, first, second),
            )
        )
    return tuple(rows)


def _behaviour(before: list[Summary], after: list[Summary]) -> tuple[BehaviourRow, ...]:
    first, second = (behaviour_of(behaviour_records(side)) for side in (before, after))
    return tuple(
        BehaviourRow(
            metric=name, meaning=METRICS[name].meaning, unit=METRICS[name].unit, before=first[name], after=second[name]
        )
        for name in METRICS
    )
