"""Each gate of an office task passes on a real task and fails when what it holds is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest
from verifier_here import MalformedDeliverable, graded, office

from journeyman.seeds import stream
from journeyman.tasks.errors import VerifierCrashed
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error
from journeyman.trials.worldgates.grading import texts_of
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.gates import GATES, Evidence, Executed, Report, Subject, cases_of, report_of
from journeyman.worlds.gates.g12_ladder import ladder_findings
from journeyman.worlds.template import Bound, Template, Unbindable
from journeyman.worlds.templates import TEMPLATES
from journeyman.worlds.variants.mutants import mutants
from journeyman.worlds.verify import Check


def bound_of(template: Template, knobs: Knobs) -> Bound:
    for draw in range(40):
        try:
            return template.bind(office(), stream(7, "test", template.id, draw), knobs)
        except Unbindable:
            continue
    raise AssertionError(f"{template.id} cannot be bound")


@cache
def subject_of(name: str, knobs: Knobs = Knobs(fan_out=1)) -> Subject:
    template = TEMPLATES[name]
    return Subject(
        7, f"train-0000-00-{name.lower()}", office(), template, bound_of(template, knobs), texts_of(office())
    )


def verdict_of(subject: Subject, files: dict[str, bytes] | None) -> Verdict:
    """As the verifier's sandbox would say it."""
    bound = subject.bound
    missing = [name for name in bound.deliverables if name not in (files or {})]
    if files is None or missing or any(len(data) > 16_000_000 for data in files.values()):
        return malformed("missing or too long")
    shown = {name: files[name] for name in bound.deliverables}
    if any(name.endswith(".json") and len(data) > 1_000_000 for name, data in shown.items()):
        return malformed("too long")
    originals = {path: subject.office.files[path] for path in bound.originals}
    try:
        found = graded(bound.checks, shown, originals)
    except MalformedDeliverable as error:
        return malformed(str(error))
    return scored(found["reward"], found["passed"], found["checks"])


@cache
def evidence_of(name: str) -> Evidence:
    subject = subject_of(name)
    verdicts = {
        case.name: verdict_of(subject, None if case.files is None else dict(case.files)) for case in cases_of(subject)
    }
    verdicts["G2:from files"] = verdicts["oracle"]
    return Evidence(verdicts, Executed(subject.write(subject.bound.answer), 12), True)


SHOWN = ("MC1", "CL9", "IB10")
"""What `make test` looks at; the others are thorough."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHOWN else pytest.mark.thorough) for name in TEMPLATES]
)
def test_every_template_passes_its_gates_on_a_world(name):
    report = report_of(subject_of(name), evidence_of(name))
    assert report.refusals() == []
    assert report.kill_rate is not None
    assert report.kill_rate >= 0.95
    assert report.counts["G4"] >= 4
    assert report.counts["G6"] >= 12


def findings(gate: str, subject: Subject, evidence: Evidence) -> list[str]:
    return list(GATES[gate].judge(subject, evidence))


def with_verdict(case: str, verdict: Verdict) -> Evidence:
    base = evidence_of("IB1")
    return replace(base, verdicts={**base.verdicts, case: verdict})


BROKEN = verifier_error(VerifierCrashed("it broke"))
FULL, NONE = scored(1.0, True), scored(0.0, False)

BREAKS: dict[str, Callable[[Subject], tuple[Subject, Evidence]]] = {
    "G0 no check": lambda s: (replace(s, bound=replace(s.bound, checks=())), evidence_of("IB1")),
    "G0 too thin": lambda s: (
        replace(s, bound=replace(s.bound, checks=s.bound.checks[:5])),
        replace(evidence_of("IB1"), oracle=Executed({}, 300)),
    ),
    "G1": lambda s: (s, replace(evidence_of("IB1"), rebuilt=False)),
    "G2 truth": lambda s: (s, with_verdict("oracle", NONE)),
    "G2 files": lambda s: (s, with_verdict("G2:from files", NONE)),
    "G2 lost": lambda s: (s, replace(evidence_of("IB1"), oracle=Executed({}, 3, "lost: no report"))),
    "G2 unreadable": lambda s: (replace(s, bound=replace(s.bound, facts=("no:such:fact",))), evidence_of("IB1")),
    "G3": lambda s: (s, with_verdict("no-op", FULL)),
    "G3 broken": lambda s: (s, with_verdict("G3:empty", BROKEN)),
    "G4 passes": lambda s: (s, with_verdict("G4:swapped-entity", FULL)),
    "G4 too few": lambda s: (replace(s, bound=replace(s.bound, wrong=s.bound.wrong[:2])), evidence_of("IB1")),
    "G4 trap": lambda s: (replace(s, bound=replace(s.bound, traps=("T9",))), evidence_of("IB1")),
    "G4 typed": lambda s: (s, with_verdict("G4:typed numbers", FULL)),
    "G5": lambda s: (s, with_verdict("G5:ltm_bridge.xlsx openpyxl", NONE)),
    "G6": lambda s: (s, replace(evidence_of("IB1"), verdicts={f"G6:{n} x": FULL for n in range(20)})),
    "G6 few": lambda s: (s, replace(evidence_of("IB1"), verdicts={"G6:1 x": NONE})),
    "G7": lambda s: (
        replace(s, bound=replace(s.bound, wrong=(replace(s.bound.wrong[0], answer=s.bound.answer),))),
        evidence_of("IB1"),
    ),
    "G8": lambda s: (s, with_verdict("naive", FULL)),
    "G9": lambda s: (
        replace(s, bound=replace(s.bound, instruction=f"It is {s.bound.answer['bridge'][0]['fy']:.0f}.")),
        evidence_of("IB1"),
    ),
    "G9 canary": lambda s: (replace(s, bound=replace(s.bound, instruction=s.office.canary)), evidence_of("IB1")),
    "G10": lambda s: (s, replace(evidence_of("IB1"), twins=("train-0000-01-ib1",))),
    "G11": lambda s: (s, with_verdict("G11:a fake reward", FULL)),
    "G12": lambda s: (s, with_verdict("trap-blind", FULL)),
}


@pytest.mark.parametrize("what", list(BREAKS))
def test_a_gate_that_is_broken_says_so_with_evidence(what):
    gate = what.split()[0]
    good = subject_of("IB1")
    assert findings(gate, good, evidence_of("IB1")) == []
    said = findings(gate, *BREAKS[what](good))
    assert said
    assert all(len(line) > 15 for line in said)


def test_a_family_whose_ladder_is_out_of_order_is_found():
    def report(**ladder: float) -> Report:
        rungs = {"no-op": 0.0, "naive": 0.0, "single": 0.1, "trap-blind": 0.2, "oracle": 1.0, **ladder}
        return Report("t", "IB1", {}, {}, rungs, 10, 1.0)

    assert ladder_findings([report()]) == []
    assert ladder_findings([report(naive=0.2)])
    assert ladder_findings([report(**{"trap-blind": 0.4})])
    assert ladder_findings([report(**{"no-op": 0.1})])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SHOWN else pytest.mark.thorough) for name in TEMPLATES]
)
def test_mutants_differ_from_the_answer_and_from_each_other_and_come_out_the_same_again(name):
    bound = subject_of(name).bound
    made = mutants(bound, stream(1, "m"), 20)
    assert made == mutants(bound, stream(1, "m"), 20)
    assert len({repr(answer) for _, answer in made} | {repr(bound.answer)}) == len(made) + 1


@pytest.mark.parametrize(
    ("name", "knob"), [("MC1", "fan_out"), ("CL1", "fan_out"), ("IB1", "hops"), ("IB12", "fan_out")]
)
def test_raising_one_knob_never_raises_the_naive_solver(name, knob):
    scores = []
    for level in (0, 1, 2):
        subject = subject_of(name, replace(Knobs(), **{knob: level}))
        case = next(case for case in GATES["G8"].cases(subject) if case.name == "naive")
        scores.append(verdict_of(subject, dict(case.files or {})).reward)
    assert scores == sorted(scores, reverse=True)


def test_templates_do_not_share_their_check_code():
    from journeyman.worlds.stats import template_costs

    found = {name: cost["shared_check_code"] for name, cost in template_costs().items()}
    assert {name: share for name, share in found.items() if share > 0.5} == {}


def test_a_common_function_that_a_template_calls_counts_as_its_own():
    from journeyman.worlds.stats import check_shingles, functions_of

    common = functions_of("def matrix(file, rows):\n" + "    rows = [file, rows, len(rows)]\n" * 4)
    calls, alone = (f"def _checks(a):\n    return [a, {name}(a, 1)]\n" for name in ("matrix", "other"))
    assert check_shingles(alone, common) == check_shingles(alone)
    assert check_shingles(calls, common) > check_shingles(calls)


def test_the_weights_of_a_judge_are_bounded():
    from journeyman.worlds.verify import lint

    checks = subject_of("IB1").bound.checks
    assert lint([*checks, Check("style", "rubric", {}, weight=0.5)], ["ltm_bridge.xlsx"])
