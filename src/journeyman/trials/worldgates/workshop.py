"""What one worker keeps between worlds (a warm verifier, environments), and how it makes one world with it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from journeyman.digest import canonical_json
from journeyman.sandbox import PROVIDERS
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tools.workbench import tools_environment
from journeyman.trials.worldgates.grading import examine, texts_of
from journeyman.trials.worldgates.legs import is_drawn, leg_of
from journeyman.trials.worldgates.metering import BUILD, GATES, Spending
from journeyman.trials.worldgates.solving import WorldDesk
from journeyman.worlds.binding import Place, Refusals, candidates, places_of
from journeyman.worlds.dedupe import Sketch, sketch_of, twins
from journeyman.worlds.diversify import Wording
from journeyman.worlds.gates import Evidence, Report, Subject, report_of
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.package import write_layer, write_program, write_task
from journeyman.worlds.splits import office_worlds
from journeyman.worlds.template import Bound, Template
from journeyman.worlds.variants.baselines import Texts
from journeyman.worlds.verify import verifier_environment

if TYPE_CHECKING:
    from journeyman.trials.worldgates.building import Order

LABEL = "worlds"
SANDBOX_GATES = ("G2", "G3", "G4", "G5", "G6", "G8", "G11", "G12")
"""Gates that say nothing when nothing was graded."""


@dataclass(frozen=True)
class Made:
    """One world with the tasks that passed, in a staging directory.

    Attributes:
        world_id, layer: which world, and where its layer lies.
        task_ids: below ``tasks/`` of the staging directory.
        refusals: what was passed over.
        facts: counts for statistics, equal in every build.
        legs: of tasks of the sample, see ``legs.leg_of``; they depend on what is installed here.
        cost: CPU seconds by side and part, see ``Spending.as_json``; not equal.
    """

    world_id: str
    layer: Path
    task_ids: tuple[str, ...]
    refusals: Refusals
    facts: Mapping[str, Any]
    legs: tuple[Mapping[str, Any], ...]
    cost: Mapping[str, Any]


class Workshop:
    """A context manager: a verifier that stays warm over all worlds of a worker.

    Args:
        environments: directory of sandbox environments.
        waive: limits that may stay unenforced.
        with_sandboxes: False for static gates only.
        wording: puts instructions into other words; None leaves them.

    Raises:
        EnvironmentMissing: there is no sandbox here, or a library is missing.
    """

    def __init__(
        self,
        environments: Path,
        waive: frozenset[str],
        *,
        with_sandboxes: bool = True,
        wording: Wording | None = None,
    ) -> None:
        self._waive, self._wording = waive, wording
        self._reworded: Counter[str] = Counter()
        self._spending = Spending(LABEL)
        self._verifier: BatchVerifier | None = None
        if with_sandboxes:
            self._provider = PROVIDERS["bwrap"]()
            self._provider.reap(LABEL)  # what builds left that were killed
            self._tools = tools_environment(environments)
            environment = verifier_environment(environments)
            self._verifier = BatchVerifier(self._provider, environment, LABEL, waive=waive, one_batch=True)

    def __enter__(self) -> Workshop:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the verifier's sandbox."""
        verifier, self._verifier = self._verifier, None
        if verifier is not None:
            verifier.close()
        self._spending.close()

    def world(self, order: Order, position: int, split: str, index: int, staging: Path) -> Made:
        """Make a world and the tasks of its places, each judged by every gate; what fails is drawn anew."""
        self._spending.start()
        office = make_office(order.seed, split, index)
        self._spending.charge(BUILD, "worlds")
        layer = write_layer(office, staging / "layers")
        program = write_program(staging)
        self._spending.charge(BUILD, "layers")
        rebuilt = None if self._verifier is None else make_office(order.seed, split, index).digest == office.digest
        self._spending.charge(GATES, "G1")
        texts = texts_of(office)
        self._spending.charge(GATES, "G8")
        bench = Bench(order, office, layer, program, staging, texts, rebuilt)
        self._reworded.clear()
        refusals = Refusals()
        kept: list[Report] = []
        sketches: list[Sketch] = []
        places = places_of(office_worlds(order.worlds, order.split), order.tasks, position)
        desk = None if self._verifier is None else self._desk(layer, office)
        try:
            for place in places:
                report = self._fill(bench, place, desk, refusals, sketches)
                if report is not None:
                    kept.append(report)
        finally:
            if desk is not None:
                desk.__exit__(None, None, None)
        self._spending.charge(GATES, "G2")  # the end of the desk
        facts = {"places": len(places), "files": len(office.files), "traps": sorted({p.trap for p in office.planted}),
                 "industry": office.industry, "style": office.style}  # fmt: skip
        facts |= {"wording": dict(sorted(self._reworded.items()))} if self._wording is not None else {}
        return Made(office.id, layer, tuple(report.task_id for report in kept), refusals, facts, tuple(bench.legs),
                    self._spending.as_json())  # fmt: skip

    def _desk(self, layer: Path, office: Office) -> WorldDesk:
        return WorldDesk(layer, self._provider, self._tools, LABEL, today=office.today, waive=self._waive)

    def _fill(
        self, bench: Bench, place: Place, desk: WorldDesk | None, refusals: Refusals, sketches: list[Sketch]
    ) -> Report | None:
        """The first candidate of a place that passes; None when none does."""
        seen = bench.instructions
        for task_id, template, bound in candidates(
            bench.order.seed, bench.office, place, bench.templates, refusals, seen
        ):
            self._spending.charge(BUILD, "binding")
            report = self._judged(bench, place, task_id, template, bound, desk, sketches)
            if report.is_publishable:
                self._leg(bench, task_id, template, bound)
                seen.add(bound.instruction)
                sketches.append(sketch_of(task_id, bound))
                return report
            for line in report.refusals():
                refusals.note(bound.template, line[:300])
            bench.remove(task_id)
        return None

    def _judged(
        self, bench: Bench, place: Place, task_id: str, template: Template, bound: Bound, desk: WorldDesk | None,
        sketches: list[Sketch],
    ) -> Report:  # fmt: skip
        order, office = bench.order, bench.office
        if self._wording is not None:
            bound, paragraphs = self._wording.worded(bound)
            self._reworded.update(f"kept: {one.refused.partition(':')[0]}" if one.refused else "reworded"
                                  for one in paragraphs)  # fmt: skip
        directory = bench.staging / "tasks" / task_id
        origin = {"seed": order.seed, "split": office.split, "index": place.world_index, "number": place.number}
        write_task(office, template, bound, directory, bench.layer, bench.program, origin)
        self._spending.charge(BUILD, "tasks")
        subject = Subject(order.seed, task_id, office, template, bound, bench.texts)
        alike = twins([*sketches, sketch_of(task_id, bound)]).get(task_id, [])
        self._lap("G10")
        report = bench.without_sandbox(report_of(subject, Evidence(rebuilt=bench.rebuilt, twins=alike), self._lap))
        if self._verifier is not None and report.is_publishable:  # what is refused at a glance need not be graded
            task = load_task(directory)
            report = examine(subject, task, self._verifier, desk, rebuilt=bench.rebuilt, twins=alike, lap=self._lap)
        (directory / "tests" / "gates.json").write_bytes(canonical_json(report.as_json()))
        self._spending.charge(BUILD, "tasks")
        return report

    def _leg(self, bench: Bench, task_id: str, template: Template, bound: Bound) -> None:
        if self._verifier is None:
            return
        subject = Subject(bench.order.seed, task_id, bench.office, template, bound, bench.texts)
        if not is_drawn(subject):
            return
        leg = leg_of(subject, load_task(bench.staging / "tasks" / task_id), self._verifier)
        bench.legs += [] if leg is None else [leg]
        self._lap("G5")

    def _lap(self, gate: str) -> None:
        self._spending.charge(GATES, gate)


class Bench:
    """One world under construction. State: instructions it has already, and legs through another program."""

    def __init__(
        self, order: Order, office: Office, layer: Path, program: Path, staging: Path, texts: Texts,
        rebuilt: bool | None,
    ) -> None:  # fmt: skip
        from journeyman.worlds.templates import TEMPLATES

        self.order, self.office, self.layer, self.program, self.staging = order, office, layer, program, staging
        self.texts, self.rebuilt = texts, rebuilt
        wanted = order.templates or tuple(TEMPLATES)
        self.templates = {name: TEMPLATES[name] for name in TEMPLATES if name in wanted}
        self.instructions: set[str] = set()
        self.legs: list[Mapping[str, Any]] = []

    def remove(self, task_id: str) -> None:
        """Forget a task that was refused."""
        import shutil

        shutil.rmtree(self.staging / "tasks" / task_id, ignore_errors=True)

    def without_sandbox(self, report: Report) -> Report:
        """A report whose ungraded gates found nothing and say that they looked at nothing."""
        findings = {gate: () if gate in SANDBOX_GATES else found for gate, found in report.findings.items()}
        counts = {gate: 0 if gate in SANDBOX_GATES else count for gate, count in report.counts.items()}
        return Report(report.task_id, report.template, findings, counts, {}, None, None)
