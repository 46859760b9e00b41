"""From checks to a reward: ``prod(gates) * sum(w * s) / sum(w)``, with an explanation of each."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from . import (
    agreement,
    answers,
    books,
    constraints,
    decks,
    journals,
    letters,
    models,
    optima,
    programs,
    reruns,
    spans,
    tables,
    writings,
)
from .bundle import Bundle, MalformedDeliverable
from .outcome import Outcome

CHECKS: dict[str, Callable[[Bundle, dict[str, Any]], Outcome]] = {
    "present": agreement.present,
    "agree": agreement.agree,
    "table": tables.table,
    "xlsx.cells": books.cells,
    "xlsx.follows": books.follows,
    "xlsx.formulas": books.formulas,
    "xlsx.formula_share": books.formula_share,
    "xlsx.no_errors": books.no_errors,
    "xlsx.chart": books.chart,
    "untouched": books.untouched,
    "changed_set": books.changed_set,
    "json.shape": answers.shape,
    "json.fields": answers.fields,
    "members": answers.members,
    "cites": answers.cites,
    "spans": spans.spans,
    "rules": constraints.rules,
    "doc.headings": writings.headings,
    "doc.mentions": writings.mentions,
    "doc.known_numbers": writings.known_numbers,
    "doc.length": writings.length,
    "doc.edits": writings.edits,
    "forbids": writings.forbids,
    "deck.titles": decks.titles,
    "deck.series": decks.series,
    "deck.says": decks.says,
    "deck.tidy": decks.tidy,
    "deck.shapes_changed": decks.shapes_changed,
    "mail.headers": letters.headers,
    "mail.attached": letters.attached,
    "journal.sealed": journals.sealed,
    "journal.obtained": journals.obtained,
    "journal.events": journals.events,
    "journal.mails": journals.mails,
    "journal.only": journals.only,
    "code.properties": programs.properties,
    "plan.feasible": optima.feasible,
    "plan.cheapest": optima.cheapest,
    "plan.proved": optima.proved,
    "set.independent": optima.independent,
    "data.records": reruns.records,
    "model.scores": models.scores,
    "model.reported": models.reported,
    "program.reproduces": reruns.reproduces,
}
"""Name of a check -> function of the deliverable and the check's parameters."""

MAX_FILES, MAX_TOTAL_BYTES = 100, 48_000_000


def grade(artifacts: dict[str, bytes], truth: dict[str, Any]) -> dict[str, Any]:
    """Run every check of a truth.

    Args:
        artifacts: delivered name -> bytes.
        truth: ``checks``: list of objects with ``id``, ``fn``, ``params``, ``kind``, ``weight``, ``required``;
            ``files``: name -> base64 of originals.

    Returns:
        ``reward``, ``passed``, ``checks`` with ``id``, ``kind``, ``score``, ``explain``.

    Raises:
        MalformedDeliverable: something is missing or cannot be read. Everything else is the verifier's own error.
    """
    if not truth["checks"]:
        raise ValueError("a task without checks")
    if len(artifacts) > MAX_FILES or sum(map(len, artifacts.values())) > MAX_TOTAL_BYTES:
        raise MalformedDeliverable(f"{len(artifacts)} files of {sum(map(len, artifacts.values()))} bytes are too much")
    originals = {name: base64.b64decode(text) for name, text in truth.get("files", {}).items()}
    bundle = Bundle(dict(artifacts), originals, truth.get("extra", {}))
    try:
        return scored(bundle, truth["checks"])
    finally:
        bundle.close()


def scored(bundle: Bundle, checks: list[dict[str, Any]]) -> dict[str, Any]:
    """Reward, and what each check says, in order."""
    found = []
    gates, gained, weights, passed = 1.0, 0.0, 0.0, True
    for check in checks:
        outcome = run(bundle, check)
        score = min(1.0, max(0.0, float(outcome.score)))
        if check.get("kind", "scored") == "gate":
            score = 1.0 if score >= 1.0 else 0.0
            gates *= score
        else:
            gained += check.get("weight", 1.0) * score
            weights += check.get("weight", 1.0)
        passed = passed and (score >= 1.0 or not check.get("required", True))
        found.append(
            {"id": check["id"], "kind": check.get("kind", "scored"), "score": score, "explain": outcome.explain[:600]}
        )
        if outcome.facts:
            found[-1]["facts"] = outcome.facts
    reward = gates * gained / weights if weights else gates
    return {"reward": round(reward, 9), "passed": passed, "checks": found}


def run(bundle: Bundle, check: dict[str, Any]) -> Outcome:
    """One check. Errors of a reader on a delivered file are the deliverable's, everything else is ours."""
    from officedocs.errors import UnreadableDocument

    try:
        return CHECKS[check["fn"]](bundle, check["params"])
    except UnreadableDocument as error:
        if error.name in bundle.originals and error.name not in bundle.files:
            raise
        raise MalformedDeliverable(str(error)[:300]) from error
