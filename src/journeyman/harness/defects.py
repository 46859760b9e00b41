"""What to do about a turn's malformed calls: the policy of each class, applied to all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from journeyman.harness.spec import CallPolicy
from journeyman.tokens.malformed import Call, Malformed, MalformedKind, ParsedTurn

HARMLESS_BESIDE_A_CALL: frozenset[MalformedKind] = frozenset({"text_after_call", "call_in_think"})
"""Classes that concern no call of their own once another call of the turn is executed."""


@dataclass(frozen=True)
class Settled:
    """What is left to do.

    Attributes:
        steps: calls to execute and defects to answer, in the order of the turn.
        again: draw the turn again; nothing may be executed before.
        ends: end the trial.
    """

    steps: tuple[Call | Malformed, ...]
    again: bool = False
    ends: bool = False


def settle(parsed: ParsedTurn, policy: Mapping[MalformedKind, CallPolicy], redraws_left: int) -> Settled:
    """Apply the policy.

    ``end`` outranks ``regenerate``, which outranks the rest. A class whose policy is ``execute`` is answered as a
    defect where no complete call of it was found; one with another policy loses the call that was repaired for it.
    """
    calls = list(parsed.calls)
    answered: list[Malformed] = []
    wanted: set[CallPolicy] = set()
    for defect in parsed.malformed:
        chosen = policy[defect.kind]
        own = [call for call in calls if _overlap(call.span, defect.span)]
        if chosen == "execute" and (own or (calls and defect.kind in HARMLESS_BESIDE_A_CALL)):
            continue
        if defect.kind in HARMLESS_BESIDE_A_CALL and calls and chosen == "error_result":
            continue
        if defect.kind == "truncated_by_length" and _is_cut_text(defect, parsed):
            continue
        wanted.add(chosen)
        calls = [call for call in calls if call not in own]
        if all(other.span != defect.span for other in answered):
            answered.append(defect)
    if "end" in wanted:
        return Settled((), ends=True)
    if "regenerate" in wanted and redraws_left > 0:
        return Settled((), again=True)
    return Settled(tuple(sorted([*calls, *answered], key=lambda step: step.span[0])))


def answer_to(defect: Malformed) -> str:
    """What the policy reads about a defect."""
    return f"error: {defect.detail} ({defect.kind}); the call was not executed"


def attempted_name(defect: Malformed, schemas: Mapping[str, object]) -> str:
    """The tool a defect speaks of, "" where it names none that is offered."""
    word = defect.detail.partition(" ")[0].rstrip(":")
    return word if word in schemas else ""


def _overlap(left: tuple[int, int], right: tuple[int, int]) -> bool:
    return left[0] < right[1] and right[0] < left[1]


def _is_cut_text(defect: Malformed, parsed: ParsedTurn) -> bool:
    """Whether only the text after the last call was cut."""
    after = [other.span for other in parsed.malformed if other.kind == "text_after_call"]
    return defect.span in after and bool(parsed.calls)
