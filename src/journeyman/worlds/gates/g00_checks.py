"""G0: the checks are a verifier: each has weight or is a gate, inaction fails, a long task gives enough feedback."""

from __future__ import annotations

from collections.abc import Iterator

from journeyman.worlds.curriculum import density_problem
from journeyman.worlds.gates.protocol import Evidence, Gate, Subject
from journeyman.worlds.verify import lint


def judge(subject: Subject, evidence: Evidence) -> Iterator[str]:
    """Lint and density."""
    bound = subject.bound
    for problem in lint(bound.checks, bound.deliverables):
        yield f"{problem.check or 'checks'}: {problem.what}"
    if evidence.oracle is not None:
        nodes = sum(check.nodes for check in bound.checks)
        steps = sum(check.stage == "intermediate" for check in bound.checks)
        if problem_text := density_problem(evidence.oracle.calls, nodes, steps):
            yield problem_text


GATE = Gate("G0", "checks are sound and dense enough", judge)
