"""One check as a template declares it, what makes a list of checks acceptable, and the truth file they become."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from journeyman.digest import canonical_json
from journeyman.tasks.opinion import MAX_SHARE, SCORING
from journeyman.worlds.verify.inside.worldverify.scoring import CHECKS

MAX_RUBRIC_SHARE = MAX_SHARE
"""Most that a judge's opinion may weigh."""

RUBRIC = "rubric"
"""A check that a judge answers (params: ``criterion``, what has to be true); never a gate, left out without a judge."""


@dataclass(frozen=True)
class Check:
    """One check.

    Attributes:
        id: unique in its task; negative controls name it.
        fn: key of ``CHECKS``, or ``rubric``.
        params: JSON value of the function's parameters, see its docstring.
        kind: ``gate`` multiplies the reward by 0 or 1, ``scored`` adds ``weight * score``.
        weight: of a scored check, positive.
        required: the task is passed only when this check is.
        no_op: whether a deliverable in which nothing was done fails or passes it.
        stage: ``final``, or ``intermediate`` for what stands before the result: parts, states, consistency.
        trap_ids: traps whose victims fail it.
    """

    id: str
    fn: str
    params: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["gate", "scored"] = "scored"
    weight: float = 1.0
    required: bool = True
    no_op: Literal["fail", "pass"] = "fail"
    stage: Literal["final", "intermediate"] = "final"
    trap_ids: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """What the verifier's program reads."""
        return {
            "id": self.id,
            "fn": self.fn,
            "params": dict(self.params),
            "kind": self.kind,
            "weight": self.weight,
            "required": self.required,
        }

    def labels(self) -> dict[str, Any]:
        """What gates and statistics read."""
        return {"id": self.id, "fn": self.fn, "kind": self.kind, "weight": self.weight, "no_op": self.no_op,
                "stage": self.stage, "trap_ids": list(self.trap_ids), "nodes": self.nodes}  # fmt: skip

    @property
    def nodes(self) -> int:
        """How many single places or values it looks at: what a policy gets feedback on."""
        params = self.params
        if self.fn == "table":
            keys = len(params.get("key") or [1])
            compared = len([c for c in params["columns"] if c["name"] in params.get("only", [c["name"]])])
            return len(params["rows"]) * max(1, compared - keys)
        if self.fn == "xlsx.follows":
            return sum(len(trial["expect"]) for trial in params["trials"])
        for key in (
            "cells",
            "fields",
            "facts",
            "items",
            "hops",
            "spans",
            "rules",
            "marks",
            "events",
            "mails",
            "cases",
            "pairs",
            "edits",
            "places",
            "headings",
            "titles",
        ):
            if params.get(key):
                return len(params[key])
        if self.fn == "deck.series":
            return sum(len(one["values"]) for one in params["series"])
        return 1


@dataclass(frozen=True)
class Problem:
    """Why a list of checks is refused."""

    check: str
    what: str


def lint(checks: Sequence[Check], deliverables: Sequence[str]) -> list[Problem]:
    """What is wrong with the checks of a task; empty for nothing.

    Args:
        deliverables: files that the task asks for.
    """
    found = []
    if not checks:
        return [Problem("", "no check: an empty list would reward inaction")]
    names = [check.id for check in checks]
    found += [Problem(name, "two checks have this id") for name in sorted({n for n in names if names.count(n) > 1})]
    scored = [check for check in checks if check.kind == "scored"]
    if not any(check.weight > 0 and check.fn != RUBRIC for check in scored):
        found.append(Problem("", "no scored check has a weight"))
    if not any(check.no_op == "fail" for check in scored):
        found.append(Problem("", "every scored check passes when nothing was done"))
    total = sum(check.weight for check in scored) or 1.0
    judged = sum(check.weight for check in scored if check.fn == RUBRIC)
    if judged / total > MAX_RUBRIC_SHARE + 1e-9:
        found.append(Problem("", f"a judge decides {judged / total:.0%}, at most {MAX_RUBRIC_SHARE:.0%} are allowed"))
    for check in checks:
        if check.fn != RUBRIC and check.fn not in CHECKS:
            found.append(Problem(check.id, f"no function {check.fn!r}; there are {', '.join(CHECKS)}"))
        if check.fn == RUBRIC and not check.params.get("criterion"):
            found.append(Problem(check.id, "a judge is asked nothing: no criterion"))
        if check.fn == RUBRIC and check.kind == "gate":
            found.append(Problem(check.id, "a judge is never a gate"))
        if check.kind == "scored" and not check.weight > 0:
            found.append(Problem(check.id, "a scored check without weight measures nothing"))
        name = check.params.get("file") or check.params.get("entry")
        if name and name not in deliverables:
            found.append(Problem(check.id, f"{name} is not a deliverable of the task"))
    return found


def rubric_of(checks: Sequence[Check]) -> bytes | None:
    """``tests/rubric.json`` for the checks that a judge answers; None where there are none."""
    asked = [check for check in checks if check.fn == RUBRIC]
    if not asked:
        return None
    own = sum(check.weight for check in checks if check.fn != RUBRIC and check.kind == "scored")
    criteria = [{"id": one.id, "criterion": one.params["criterion"], "weight": one.weight} for one in asked]
    return canonical_json({"criteria": criteria, "scoring": SCORING, "scoring_values": {"checks_weight": own}})


def truth_of(checks: Sequence[Check], originals: Mapping[str, bytes] | None = None, canary: str = "") -> bytes:
    """``tests/truth.json``: the checks with what they expect, and the files of the world that they compare with."""
    return canonical_json(
        {
            "checks": [check.as_json() for check in checks if check.fn != RUBRIC],
            "files": {name: base64.b64encode(data).decode() for name, data in sorted((originals or {}).items())},
            "canary": canary,
        }
    )
