"""What a person says of each failure: one durable file beside the trials, and how far the classifier agrees with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from journeyman.clock import now
from journeyman.durable import write_json
from journeyman.errors import InputError, nearest
from journeyman.ladder.dryrun.figures import cohens_kappa
from journeyman.trials.dryrun import CLASSES, FailureClass, Finding

FILE = "triage.json"


def read_triage(out: Path) -> dict[str, dict[str, str]]:
    """Trial id -> ``{"class", "classifier", "at"}``; empty where nobody triaged.

    Raises:
        InputError: the file is damaged.
    """
    path = out / FILE
    if not path.exists():
        return {}
    try:
        found: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(str(path), f"is damaged: {error}") from error
    return found


def set_classes(out: Path, findings: Sequence[Finding], said: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Store what a person said of some failures; what was said before of others stays.

    Args:
        findings: of the classifier.
        said: trial id -> class.

    Raises:
        InputError: no such class, or no failure of that trial. Nothing was stored.
    """
    by_trial = {finding.trial_id: finding for finding in findings}
    kept = read_triage(out)
    for trial_id, word in said.items():
        failure = class_named(word)
        if trial_id not in by_trial:
            near = nearest(trial_id, by_trial)
            hint = f"nearest: {near}" if near else "journeyman dry-run TASKS --json lists the failures"
            raise InputError("--set", f"no failure of a trial {trial_id!r}", hint=hint)
        kept[trial_id] = {"class": failure, "classifier": by_trial[trial_id].failure, "at": now()}
    write_json(out / FILE, kept)
    return kept


def class_named(word: str) -> FailureClass:
    """A class by its name or an unambiguous beginning of it. Raises InputError."""
    found = [name for name in CLASSES if word and name.startswith(word)]
    if len(found) != 1:
        raise InputError("class", f"{word!r} is none", allowed=", ".join(CLASSES))
    return found[0]


def agreement(findings: Sequence[Finding], triage: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """How far the classifier agrees with the person, over the failures that were triaged.

    Returns:
        ``n``, ``agreed``, ``share`` (None without any), ``kappa`` (Cohen's; None where it is not defined), ``changed``
        (trial id, classifier's and person's class), ``untriaged``.
    """
    pairs = [(f.trial_id, f.failure, triage[f.trial_id]["class"]) for f in findings if f.trial_id in triage]
    agreed = sum(ours == theirs for _, ours, theirs in pairs)
    return {
        "n": len(pairs),
        "agreed": agreed,
        "share": agreed / len(pairs) if pairs else None,
        "kappa": cohens_kappa([ours for _, ours, _ in pairs], [theirs for _, _, theirs in pairs]),
        "changed": [list(pair) for pair in pairs if pair[1] != pair[2]],
        "untriaged": len(findings) - len(pairs),
    }


def agreement_line(found: Mapping[str, Any]) -> str:
    """The agreement in a sentence."""
    if not found["n"]:
        return f"nobody has looked at the {found['untriaged']} failures"
    kappa = "not defined (one class only)" if found["kappa"] is None else f"{found['kappa']:.2f}"
    return (
        f"a person looked at {found['n']} failures and agreed with the classifier on {found['agreed']} "
        f"({found['share']:.0%}); Cohen's kappa {kappa}; {found['untriaged']} not looked at"
    )
