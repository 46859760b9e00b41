"""A dry run from the user's wishes to its end: plan, run, audit, and the comparison with an earlier run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from journeyman.durable import write_json
from journeyman.errors import InputError
from journeyman.ladder.dryrun import against, text
from journeyman.ladder.dryrun.audit import audit_run, exit_code
from journeyman.ladder.dryrun.evidence import read_evidence
from journeyman.ladder.dryrun.plan import FILE, Plan, check_offer, keep_plan, make_plan, read_plan
from journeyman.ladder.dryrun.run import is_finished, run_plan
from journeyman.ladder.dryrun.stage import Say
from journeyman.redact import process_redactor
from journeyman.tasks.task import load_task

COMPARISON = "against.json"
DEFAULTS: Mapping[str, Any] = {
    "policy": "oracle",
    "harness": "toolbelt",
    "samples": 1,
    "seed": 0,
    "temperature": 1.0,
    "context_tokens": 0,
    "mcp": "",
    "faults": "",
    "task_servers": False,
    "judge": "",
    "judge_keys": (),
}


@dataclass(frozen=True)
class Wishes:
    """What the user gave.

    Attributes:
        tasks: task directories; none: those of ``against``.
        given: arguments of ``make_plan`` that were named.
        against: an earlier run; what was not named is as there.
    """

    tasks: Sequence[Path] = ()
    given: Mapping[str, Any] = field(default_factory=dict)
    against: Path | None = None


@dataclass(frozen=True)
class Done:
    """What a dry run came to: its report, and the comparison where one was asked for."""

    report: dict[str, Any]
    comparison: dict[str, Any] | None

    @property
    def exit_code(self) -> int:
        """See ``audit.exit_code``."""
        return exit_code(self.report)

    def as_json(self) -> dict[str, Any]:
        return {**self.report, "against": self.comparison}

    def lines(self) -> Iterator[str]:
        """For the terminal; the verdict comes last."""
        if self.comparison is not None:
            yield from against.lines(self.comparison)
            yield ""
        yield from text.lines(self.report)


def dry_run_of(
    wishes: Wishes, out: Path, *, concurrency: int, gate: float, abort_at: float, waive: frozenset[str], say: Say
) -> Done:
    """Run what is missing and judge all of it. A finished run that is only named is judged as it lies there.

    Raises:
        InputError: the wishes make no plan, ``out`` holds another one, or the runs cannot be paired.
        EnvironmentMissing: there is no sandbox.
    """
    earlier = read_plan(wishes.against) if wishes.against is not None else None
    if wishes.tasks or wishes.given or not is_finished(out):
        plan = plan_of(wishes, out, earlier)
        check_offer(plan)
        plan = keep_plan(plan, out)
        run_plan(plan, out, concurrency=concurrency, abort_at=abort_at, waive=waive, say=say)
    report = audit_run(out, gate=gate, abort_at=abort_at)
    comparison = None
    if wishes.against is not None:
        comparison = process_redactor().data(against.compare(read_evidence(wishes.against), read_evidence(out)))
        write_json(out / COMPARISON, comparison)
    return Done(report, comparison)


def plan_of(wishes: Wishes, out: Path, earlier: Plan | None) -> Plan:
    """The plan: what was named, else as in the earlier run, else the defaults.

    Raises:
        InputError: neither tasks nor an earlier run were named; see ``make_plan``.
    """
    if earlier is not None:
        defaults = {name: getattr(earlier, name) for name in DEFAULTS} | {"today": earlier.today}
        paths = list(wishes.tasks) or [Path(task.path) for task in earlier.tasks]
    elif wishes.tasks:
        defaults, paths = dict(DEFAULTS), list(wishes.tasks)
    elif (out / FILE).exists():
        kept = read_plan(out)
        defaults, paths = {name: getattr(kept, name) for name in DEFAULTS}, [Path(task.path) for task in kept.tasks]
    else:
        raise InputError("TASKS", "is missing", allowed="a directory of tasks, or --against RUN")
    return make_plan([load_task(path) for path in paths], **{**defaults, **wishes.given})
