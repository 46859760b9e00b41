"""The five classes of failure, and one finding: which class, by which rule, on what evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

FailureClass = Literal["model", "tool", "harness", "environment", "verifier"]

CLASSES: dict[FailureClass, str] = {
    "model": "the policy could have done it and did not",
    "tool": "a tool answered with something no policy can use, or its machinery broke",
    "harness": "a limit, the loop, the engine or the executor ended the trial",
    "environment": "a package, a program or a sandbox that the task needs is missing or did not start",
    "verifier": "the verifier broke, refuses the task's own solution, or accepts what did no work",
}
"""Class -> what it means. Everything but ``model`` counts as a non-model error."""

assert tuple(CLASSES) == get_args(FailureClass)

Policy = Literal["oracle", "noop", "random", "model"]
POLICIES: tuple[Policy, ...] = get_args(Policy)


@dataclass(frozen=True)
class Finding:
    """Why one trial failed.

    Attributes:
        trial_id, attempt: which trial, by the attempt that counts.
        task_id: of which task.
        failure: the class.
        rule: the rule that decided, in a few words; equal rules with equal subjects are one defect.
        subject: what the rule speaks of: a module, a tool, a limit, a type of error; "" where it is the trial itself.
        evidence: what was seen, quoted.
        where: which part of the record holds it.
    """

    trial_id: str
    attempt: int
    task_id: str
    failure: FailureClass
    rule: str
    subject: str
    evidence: str
    where: str

    @property
    def defect(self) -> str:
        """The name that equal failures share."""
        return f"{self.failure}: {self.rule}" + (f": {self.subject}" if self.subject else "")

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "defect": self.defect}
