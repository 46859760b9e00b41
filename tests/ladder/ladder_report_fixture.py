"""A whole report made of synthetic trials: plausible in shape, invented in every number, and said so inside."""

from __future__ import annotations

import random

from journeyman.digest import sha256
from journeyman.evals.multiple import holm
from journeyman.evals.proportion import wilson
from journeyman.evals.score import Boundary, Ratio
from journeyman.evals.tally import GradedTrial, by_family, difference_of, score_of
from journeyman.ladder.report.figures import Column, Curve, Gate, Point, Series, Table
from journeyman.ladder.report.model import Report, Run, Step
from journeyman.ladder.report.replay import CheckLine, ReplayVerdict, Token, Trajectory, Turn
from journeyman.ladder.report.sections import (
    Ablation,
    AblationRow,
    BehaviourRow,
    ErrorRow,
    ErrorTable,
    FamilyRow,
    Gains,
    GapPoint,
    ManifestEntry,
    ModelRow,
    Opening,
    Scores,
    Transfer,
)

FAMILIES = ("cross", "look", "own", "rep", "sum2")
RATES = {
    ("clean_base", "toolbelt"): 0.97,
    ("warm_start", "toolbelt"): 0.16,
    ("trained", "toolbelt"): 0.92,
    ("fresh", "toolbelt"): 0.0,
    ("clean_base", "react"): 0.96,
    ("warm_start", "react"): 0.17,
    ("trained", "react"): 0.86,
    ("fresh", "react"): 0.0,
}
LABELS = {
    "clean_base": "clean base",
    "warm_start": "warm start (imperfect demonstrator)",
    "trained": "trained",
    "fresh": "fresh initialisation",
}


def trials(rate: float, seed: int, *, n_worlds: int = 50, split: str = "test") -> list[GradedTrial]:
    """Two tasks per world, two trials per task; ``rep`` gives half credit for half an answer."""
    rng = random.Random(seed)
    made = []
    for number in range(2 * n_worlds):
        family = FAMILIES[number % len(FAMILIES)]
        for _ in range(2):
            passed = rng.random() < rate
            reward = 1.0 if passed else 0.5 if family == "rep" and rng.random() < 0.4 else 0.0
            world = f"{split}-{number // 2:04d}"
            made.append(
                GradedTrial(f"{world}-{number}", world, family, "solved" if passed else "failed", reward, passed)
            )
    return made


def scores(made: list[GradedTrial], boundary: str) -> Scores:
    return Scores(
        mean_reward=score_of(made, "mean_reward", boundary=boundary),
        pass_1=score_of(made, "pass@1", boundary=boundary),
    )


def gains(before: list[GradedTrial], after: list[GradedTrial], a: str, b: str) -> Gains:
    return Gains(
        mean_reward=difference_of(before, after, "mean_reward", a=a, b=b),
        pass_1=difference_of(before, after, "pass@1", a=a, b=b),
    )


def make_report(*, hostile: str = "") -> Report:
    """The synthetic report; ``hostile`` is put into every free text that comes from documents, models or users."""
    evaluated = {key: trials(rate, i) for i, (key, rate) in enumerate(RATES.items())}
    boundaries = [_boundary(role, harness) for role, harness in RATES]
    dev = Boundary(
        name="dev / toolbelt", model="ablation arms", harness="toolbelt", split="dev", judge="tests/check.py"
    )
    return Report(
        run=_run(),
        status="passed",
        honesty=(
            "SYNTHETIC: this report is a test fixture; no run measured these numbers.",
            "The warm start comes from an imperfect demonstrator: flawed demonstrations suppress a workflow that the "
            "clean base already executes. Training restores it; it does not create a skill.",
            "Held-out worlds have new values and files, but the same pools of names and the same task templates.",
        ),
        warnings=(f"sandbox tier none: no user namespaces on this machine; tasks of the quickstart only. {hostile}",),
        steps=_steps(hostile),
        boundaries=(*boundaries, dev, _boundary("warm_start", "toolbelt", split="train")),
        models=tuple(
            ModelRow(
                role=role,
                label=LABELS[role] + hostile,
                harness=harness,
                decoding="sampled, T=1",
                scores=scores(made, f"{role} / {harness} / test"),
            )
            for (role, harness), made in evaluated.items()
        ),
        transfer=tuple(
            Transfer(
                harness=harness,
                trained_under=harness == "toolbelt",
                gains=gains(evaluated["warm_start", harness], evaluated["trained", harness], "warm start", "trained"),
            )
            for harness in ("toolbelt", "react")
        ),
        reward_curve=_reward_curve(),
        curves=(_loss_curve(),),
        families=_families(evaluated["warm_start", "toolbelt"], evaluated["trained", "toolbelt"], hostile),
        behaviour=_behaviour(),
        ablation=_ablation(),
        errors=_errors(hostile),
        openings=(
            Opening(
                by="step 7 transfer",
                purpose="toolbelt, four models",
                n_worlds=50,
                n_tasks=100,
                opened_at="2026-11-30T08:03:11Z",
            ),
            Opening(
                by="step 7 transfer",
                purpose="react, four models",
                n_worlds=50,
                n_tasks=100,
                opened_at="2026-11-30T08:03:15Z",
                n_times=2,
            ),
        ),
        logprob_gaps=tuple(
            GapPoint(step=i, mean=2e-8 * (i + 1), q99=4e-7, q999=9e-7, max=2.1e-6, n_tokens=15_000 - 300 * i)
            for i in range(14)
        ),
        replay=_replay(hostile),
        manifest=tuple(
            ManifestEntry(
                name=name, role=role, sha256=sha256(name.encode()), size_bytes=size, measures_time=role == "log"
            )
            for name, role, size in [
                ("recipe.json", "resolved recipe", 2_310),
                ("tokenizer/tokenizer.json", "tokenizer", 48_112),
                ("models/trained/model.safetensors", "trained weights", 2_098_312),
                ("events.jsonl", "log", 90_455),
            ]
        ),
    )


def _boundary(role: str, harness: str, split: str = "test") -> Boundary:
    return Boundary(
        name=f"{role} / {harness} / {split}",
        model=LABELS[role],
        model_sha256=sha256(role.encode()),
        harness=harness,
        tools=("lookup", "calc", "read_file"),
        judge="tests/check.py in a fresh sandbox",
        budgets={"turns": 6 if harness == "toolbelt" else 8, "new tokens per turn": 44, "context tokens": 640},
        split=split,
    )


def _run() -> Run:
    return Run(
        name="quickstart",
        version="0.1.0",
        profile="tiny",
        seed=0,
        command="journeyman quickstart --seed 0 --profile tiny",
        machine={"cpu": "2 x synthetic, avx512_bf16", "memory": "7.8 GB", "sandbox": "bwrap 0.11, cgroup v1"},
        started_at="2026-11-30T08:00:00Z",
        finished_at="2026-11-30T08:03:52Z",
        wall_s=232.4,
        wall_budget_s=360,
        cpu_s=401.7,
        cpu_source="cgroup cpuacct",
        cpu_budget_s=650,
        peak_memory_mb=2310,
        memory_budget_mb=4096,
    )


def _steps(hostile: str) -> tuple[Step, ...]:
    gate = Gate.of
    table = Table(
        title="Dry run of all tasks" + hostile,
        columns=(
            Column(name="family"),
            Column(name="mean reward", kind="mean_reward"),
            Column(name="pass@1", kind="pass@1"),
            Column(name="usable tasks"),
            Column(name="trials per second", unit="trials/s", measures_time=True),
        ),
        rows=tuple(
            (family, *_dry(made), 12, 31.25 + i)
            for i, (family, made) in enumerate(by_family(trials(0.16, 77, split="train")).items())
        ),
        note="96 tasks, 8 trials each.",
    )
    listed = [
        (
            "environment",
            gate("system error share", 0.0, "<", 0.01),
            (gate("oracles below 1.0", 0, "==", 0), gate("negative controls at 1.0", 0, "==", 0)),
        ),
        ("tokens", gate("mean abs logprob gap", 3.1e-8, "<", 1e-4), (gate("re-tokenised actions", 0, "==", 0),)),
        (
            "system",
            gate("share of padding", 0.18, "<=", 0.4),
            (gate("trainer idle share", 0.41, "<=", 0.7, measures_time=True),),
        ),
        (
            "overfit",
            gate(
                "lower end of the paired 95 % interval of the gain",
                0.682,
                ">",
                0,
                detail="32 tasks, 8 fresh samples before and after",
            ),
            (gate("mean reward of the last step", 0.95, ">=", 0.7),),
        ),
        ("ablate", gate("arms with a judged comparison", 4, ">=", 4), ()),
        ("train", gate("mean reward of the last step", 0.953, ">", 0.7), ()),
        ("transfer", gate("lower end of the held-out interval", 0.641, ">", 0), ()),
    ]
    return tuple(
        Step(
            number=i + 1,
            name=name,
            status="passed",
            gate=main,
            checks=checks,
            summary=f"What step {name} did, in one sentence. {hostile}",
            evidence={
                "n_trials": 768,
                "worlds": ["train", "dev"],
                "note": f"free text {hostile}",
                "nested": {"seen": 3},
            },
            timing={"trials_per_cpu_s": 31.25},
            tables=(table,) if i == 0 else (),
            look_at=("steps/1/trials.jsonl",),
            wall_s=12.5 * (i + 1),
            cpu_s=20.25 * (i + 1),
        )
        for i, (name, main, checks) in enumerate(listed)
    )


def _dry(made: list[GradedTrial]):
    found = scores(made, "warm_start / toolbelt / train")
    return found.mean_reward, found.pass_1


def _reward_curve() -> Curve:
    means = [0.213, 0.381, 0.559, 0.732, 0.75, 0.844, 0.881, 0.918, 0.926, 0.91, 0.926, 0.918, 0.971, 0.969]
    return Curve(
        title="RL reward per step, train worlds",
        x_name="RL step",
        y_name="score",
        series=tuple(
            Series(
                name=kind,
                kind=kind,
                points=tuple(
                    Point(x=i + 1, y=m - drop, low=m - drop - 0.07, high=min(1.0, m - drop + 0.07), n=256)
                    for i, m in enumerate(means)
                ),
            )
            for kind, drop in (("mean_reward", 0.0), ("pass@1", 0.035))
        ),
        note="Each point: 32 tasks, 8 trials each, temperature 1; band: 95 % t, clustered by world.",
    )


def _loss_curve() -> Curve:
    points = tuple(Point(x=50 * i, y=2.0 * 0.55**i, n=100) for i in range(1, 15))
    return Curve(
        title="Base SFT, held-out loss",
        x_name="optimizer step",
        y_name="nats per token",
        y_scale="log",
        series=(Series(name="held-out loss", points=points),),
    )


def _families(before, after, hostile: str) -> tuple[FamilyRow, ...]:
    old, new = by_family(before), by_family(after)
    return tuple(
        FamilyRow(
            family=family + hostile,
            before=scores(old[family], "warm_start / toolbelt / test"),
            after=scores(new[family], "trained / toolbelt / test"),
            gains=gains(old[family], new[family], "warm start", "trained"),
        )
        for family in FAMILIES
    )


def _behaviour() -> tuple[BehaviourRow, ...]:
    return (
        BehaviourRow(
            metric="turns", meaning="model calls per trial", before=Ratio.of(540, 200), after=Ratio.of(620, 200)
        ),
        BehaviourRow(
            metric="invalid_call_rate", meaning="of attempted calls", before=Ratio.of(61, 540), after=Ratio.of(3, 620)
        ),
        BehaviourRow(
            metric="execution_error_rate", meaning="of well-formed calls", before=Ratio.of(0, 0), after=Ratio.of(9, 617)
        ),
        BehaviourRow(
            metric="tokens_per_turn",
            meaning="sampled",
            unit="tokens",
            before=Ratio.of(11_400, 540),
            after=Ratio.of(12_900, 620),
        ),
    )


def _ablation() -> Ablation:
    rows, p_values = [], []
    for seed in (100, 101):
        control, other = trials(0.82, seed, split="dev"), trials(0.84, seed + 50, split="dev")
        rows.append(AblationRow(arm="prompt mean", seed=seed, is_control=True, dev=scores(control, "dev / toolbelt")))
        found = gains(control, other, "prompt mean", "token mean")
        p_values.append(found.pass_1.p or 1.0)
        rows.append(
            AblationRow(arm="token mean", seed=seed, is_control=False, dev=scores(other, "dev / toolbelt"), gains=found)
        )
    adjusted = iter(holm(p_values))
    rows = [
        row
        if row.gains is None
        else row.model_copy(
            update={
                "gains": row.gains.model_copy(
                    update={"pass_1": row.gains.pass_1.model_copy(update={"p_adjusted": next(adjusted)})}
                )
            }
        )
        for row in rows
    ]
    return Ablation(
        factor="loss aggregation",
        family="token mean against prompt mean, two seeds",
        rows=tuple(rows),
        conclusion="No difference shown at this n: the interval of every comparison covers 0.",
    )


def _errors(hostile: str) -> ErrorTable:
    rows = [
        ("agent_exhausted_budget", 412, False, True, True),
        ("sandbox_failed", 0, True, False, False),
        ("engine_failed", 0, True, False, False),
        ("verifier_failed", 2, False, True, False),
        ("cancelled", 0, False, False, False),
        ("unclassified", 0, True, True, False),
    ]
    low, high = wilson(2 / 11_904, 11_904)
    return ErrorTable(
        n_trials=11_904,
        rows=tuple(
            ErrorRow(
                cause=cause, n_trials=n, retry=retry, grade=grade, reward_valid=valid, example=hostile if n else ""
            )
            for cause, n, retry, grade, valid in rows
        ),
        system_error_share=2 / 11_904,
        low=low,
        high=high,
    )


def _replay(hostile: str) -> Trajectory:
    def run(index: int, role: str, source: str, pieces: list[str], version: int | None = None) -> Turn:
        rng = random.Random(index)
        return Turn(
            index=index,
            role=role,
            tokens=tuple(
                Token(
                    text=piece,
                    id=(len(piece) * 37 + 11 * i) % 634,
                    source=source,
                    mask=int(source == "sampled"),
                    logprob=-rng.expovariate(2.0) if source == "sampled" else None,
                    version=version if source == "sampled" else None,
                )
                for i, piece in enumerate(pieces)
            ),
        )

    prompt = [
        "<|im_start|>",
        "system",
        "\n",
        "tools: ",
        "lookup",
        " calc",
        " submit",
        "<|im_end|>",
        "\n",
        "<|im_start|>",
        "user",
        "\n",
        "add Fern Q1 and Moss Q3 from sales.xlsx",
        hostile,
        "<|im_end|>",
        "\n",
        "<|im_start|>",
        "assistant",
        "\n",
    ]
    call = [
        "<tool_call>",
        '{"name":"',
        "lookup",
        '","arguments":{"path":"',
        "sales.xlsx",
        '","row":"',
        "Fern",
        '","col":"',
        "Q1",
        '"}}',
        "</tool_call>",
        "<|im_end|>",
    ]
    result = [
        "\n",
        "<|im_start|>",
        "user",
        "\n",
        "<tool_response>",
        "4",
        "1",
        "2",
        "</tool_response>",
        "<|im_end|>",
        "\n",
        "<|im_start|>",
        "assistant",
        "\n",
    ]
    return Trajectory(
        trial_id="step14-t07-3",
        task_id="train-0007-sum2",
        family="sum2",
        split="train",
        model="trained, weights 14",
        harness="toolbelt",
        why="the first trial of the last step whose group had both passed and failed trials",
        instruction="add Fern Q1 and Moss Q3 from sales.xlsx" + hostile,
        stop_reason="answered",
        turns=(
            run(0, "prompt", "prompt", prompt),
            run(0, "policy", "sampled", call, 14),
            run(0, "tool", "observation", result),
            run(
                1,
                "policy",
                "sampled",
                [
                    "<tool_call>",
                    '{"name":"',
                    "submit",
                    '","arguments":{"answer":"',
                    "9",
                    "0",
                    "1",
                    '"}}',
                    "</tool_call>",
                    "<|im_end|>",
                ],
                14,
            ),
            run(1, "policy", "forced", ["</tool_call>"]),
        ),
        deliverable='{"answer": "901"}' + hostile,
        verdict=ReplayVerdict(
            kind="scored",
            reward=1.0,
            passed=True,
            explain="1 of 1 fields equal" + hostile,
            checks=(CheckLine(id="answer", kind="scored", score=1.0, explain="901 = 901"),),
        ),
    )
