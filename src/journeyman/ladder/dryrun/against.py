"""Two harness versions on the same untrained policy and tasks, trial by trial: what each repair was worth.

Pairs have the same task, sample and seed. Two differences are given, and never mixed: of the reward, over pairs in
which both trials have a valid one; and of the yield, over all pairs, where a trial that broke yields nothing. The yield
is what a harness delivers of a policy, not a score of the policy. Repairs divide the difference of the yield among
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from journeyman.errors import InputError
from journeyman.ladder.dryrun.evidence import Evidence
from journeyman.ladder.dryrun.figures import difference
from journeyman.ladder.dryrun.plan import Plan

Comparison = dict[str, Any]
NO_DEFECT = "no non-model error on either side"


@dataclass(frozen=True)
class Pair:
    """One trial under both versions: reward (None without a valid one) and non-model defect ("" without one)."""

    trial_id: str
    task_id: str
    before: float | None
    after: float | None
    defect_before: str
    defect_after: str

    @property
    def gain(self) -> float:
        """Difference of the yield."""
        return (self.after or 0.0) - (self.before or 0.0)


def compare(before: Evidence, after: Evidence) -> Comparison:
    """The paired differences and one entry per repair.

    Raises:
        InputError: policy, seed, samples or temperature differ, or no task is the same for the policy.
    """
    changed = _comparable(before.plan, after.plan)
    seen = {t.id: t.seen_sha256 for t in before.plan.tasks}
    common = {t.id for t in after.plan.tasks if seen.get(t.id) == t.seen_sha256}
    pairs = _pairs(before, after, common)
    if not pairs:
        problem = "no trial of both runs has the same task, sample and an end"
        raise InputError("--against", problem, hint="finish both runs over the same tasks")
    tasks = [pair.task_id for pair in pairs]
    valid = [pair for pair in pairs if pair.before is not None and pair.after is not None]
    return {
        "schema_version": 1,
        "before": _side(before),
        "after": _side(after),
        "same_harness_version": _version(before.plan) == _version(after.plan),
        "changed_tasks": changed,
        "left_out_tasks": sorted({t.id for t in (*before.plan.tasks, *after.plan.tasks)} - common),
        "pairs": len(pairs),
        "reward": difference(
            [pair.before or 0.0 for pair in valid], [pair.after or 0.0 for pair in valid], [p.task_id for p in valid]
        ),
        "yield": difference([pair.before or 0.0 for pair in pairs], [pair.after or 0.0 for pair in pairs], tasks),
        "mean_yield": [
            sum(p.before or 0.0 for p in pairs) / len(pairs),
            sum(p.after or 0.0 for p in pairs) / len(pairs),
        ],
        "repairs": repairs(pairs),
    }


def repairs(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    """One entry per defect that disappeared, appeared or changed, and one for all pairs without any.

    A pair belongs to the defect it had before, else to the one it has after. ``worth`` is what its pairs add to the
    mean yield of all pairs, with an interval clustered by task; the entries add up to the whole difference.
    """
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.defect_before or pair.defect_after, []).append(pair)
    entries = []
    for defect, members in groups.items():
        inside = {pair.trial_id for pair in members}
        gains = [pair.gain if pair.trial_id in inside else 0.0 for pair in pairs]
        entries.append(
            {
                "defect": defect or NO_DEFECT,
                "change": _change(defect, members) if defect else "none",
                "trials_before": sum(pair.defect_before == defect for pair in members) if defect else 0,
                "trials_after": sum(pair.defect_after == defect for pair in pairs) if defect else 0,
                "regained": sum(pair.before is None and pair.after is not None for pair in members),
                "worth": difference([0.0] * len(pairs), gains, [pair.task_id for pair in pairs]),
            }
        )
    order = {"disappeared": 0, "fewer": 1, "appeared": 2, "more": 3, "as before": 4, "none": 5}
    return sorted(entries, key=lambda e: (order[str(e["change"])], -abs(e["worth"]["mean"]), str(e["defect"])))


def lines(found: Mapping[str, Any]) -> list[str]:
    """The comparison in words, one line per repair."""
    before, after = found["before"], found["after"]
    text = [
        f"before  {before['out']}  {before['harness']} ({before['harness_sha256'][:12]})",
        f"after   {after['out']}  {after['harness']} ({after['harness_sha256'][:12]})",
    ]
    if found["same_harness_version"]:
        text.append("both runs have the same harness version: what differs lies in the tasks, the machine or chance")
    text += [f"changed between the runs: {line}" for line in found["changed_tasks"]]
    if found["left_out_tasks"]:
        text.append(f"left out, because the policy sees another task or only one run has it: {found['left_out_tasks']}")
    text += [_repair_line(entry) for entry in found["repairs"]]
    reward, gained = found["reward"], found["yield"]
    text.append(f"reward where both trials have one: {_points(reward)} ({reward['n']} of {found['pairs']} pairs)")
    low, high = found["mean_yield"]
    text.append(f"yield: {100 * low:.2f} to {100 * high:.2f} % of what could be had, {_points(gained)}")
    return text


def _repair_line(entry: Mapping[str, Any]) -> str:
    if entry["change"] == "none":
        return f"{'chance':<11} {entry['defect']}: {_points(entry['worth'])}"
    counts = f"{entry['trials_before']} -> {entry['trials_after']} trials"
    regained = f", {entry['regained']} trials with a reward again" if entry["regained"] else ""
    return f"{entry['change']:<11} {entry['defect']}: {counts}{regained}; worth {_points(entry['worth'])}"


def _points(found: Mapping[str, Any]) -> str:
    """A difference in points of mean reward."""
    if found["mean"] is None:
        return "no pair"
    if found["low"] is None:
        return f"{100 * found['mean']:+.2f} points ({found['interval']})"
    return f"{100 * found['mean']:+.2f} points, {100 * found['low']:+.2f} to {100 * found['high']:+.2f}"


def _change(defect: str, members: Sequence[Pair]) -> str:
    had, has = (sum(getattr(p, side) == defect for p in members) for side in ("defect_before", "defect_after"))
    if had and not has:
        return "disappeared"
    if has and not had:
        return "appeared"
    return "as before" if had == has else "fewer" if has < had else "more"


def _pairs(before: Evidence, after: Evidence, common: set[str]) -> list[Pair]:
    names = sorted(before.records.keys() & after.records.keys())
    sides = [(before.records, _defects(before)), (after.records, _defects(after))]
    found = []
    for name in names:
        task_id = str(after.records[name].get("task_id", ""))
        if task_id in common:
            (was, had), (now, has) = sides
            found.append(
                Pair(
                    name,
                    task_id,
                    was[name].get("reward"),
                    now[name].get("reward"),
                    had.get(name, ""),
                    has.get(name, ""),
                )
            )
    return found


def _defects(evidence: Evidence) -> dict[str, str]:
    return {name: f.defect for name, f in evidence.settled.items() if f.failure != "model"}


def _comparable(before: Plan, after: Plan) -> list[str]:
    """What changed in the tasks besides what the policy sees, in words. Raises InputError for another experiment."""
    different = [
        f"{name} ({getattr(before, name)} and {getattr(after, name)})"
        for name in ("policy", "seed", "samples", "temperature")
        if getattr(before, name) != getattr(after, name)
    ]
    if different:
        raise InputError(
            "--against", f"the runs differ in {', '.join(different)}", hint="pair the same policy and seed"
        )
    earlier = {task.id: task for task in before.tasks}
    found = []
    for name, word in (("tests_sha256", "verifier"), ("solution_sha256", "solution")):
        ids = [t.id for t in after.tasks if t.id in earlier and getattr(t, name) != getattr(earlier[t.id], name)]
        if ids:
            found.append(f"the {word} of {len(ids)} task{'s' if len(ids) != 1 else ''}: {', '.join(ids[:5])}")
    return found


def _version(plan: Plan) -> tuple[str, str, str]:
    return plan.harness, plan.harness_sha256, plan.place


def _side(evidence: Evidence) -> dict[str, Any]:
    plan = evidence.plan
    return {"out": str(evidence.out), "harness": plan.harness, "harness_sha256": plan.harness_sha256}
