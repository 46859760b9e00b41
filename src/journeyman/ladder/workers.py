"""Second processes of a run: one job each, a deadline, and no life of their own.

A worker shares the run directory, does one job of ``JOBS`` and acknowledges it as a stage. It dies with its parent
(``PR_SET_PDEATHSIG``), and what it had not acknowledged is done again.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from journeyman.durable import STORAGE_ERRNOS
from journeyman.errors import DeadlinePassed, StorageError, SystemFault
from journeyman.ladder.recipe import QuickstartRecipe
from journeyman.ladder.rundir import RunDirectory

JOB_DEADLINE_S = 1800.0
PR_SET_PDEATHSIG = 1


class WorkerFailed(SystemFault):
    """A worker ended without acknowledging its job. Its output lies in the run directory."""


class Worker:
    """One job in another process.

    Args:
        run: the run directory.
        stage: stage that the job acknowledges; an already complete one starts no process.
        arguments: of the job, JSON.
        job: key of ``JOBS``; the stage's name by default.
    """

    def __init__(self, run: RunDirectory, stage: str, arguments: Mapping[str, Any], *, job: str | None = None) -> None:
        self.run, self.stage = run, stage
        self._argv = [sys.executable, "-m", "journeyman.ladder.workers", str(run.root), job or stage, stage]
        self._argv.append(json.dumps(dict(arguments)))
        self._log = run.path("logs", f"{stage}.log")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Worker:
        if self.run.load(self.stage) is None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("ab") as log:
                self._process = subprocess.Popen(self._argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def result(self, deadline_s: float = JOB_DEADLINE_S) -> dict[str, Any]:
        """Wait for the job and return its record.

        Raises:
            DeadlinePassed: the job was killed at its deadline.
            StorageError: it could not write its results.
            WorkerFailed: it ended without a record; the message holds the end of its output.
        """
        if self._process is not None:
            try:
                self._process.wait(deadline_s)
            except subprocess.TimeoutExpired as error:
                self._process.kill()
                raise DeadlinePassed(f"the worker of {self.stage}", deadline_s) from error
        record = self.run.load(self.stage)
        if record is None:
            tail = self._log.read_text(errors="replace")[-2000:] if self._log.is_file() else ""
            if self._process is not None and self._process.returncode == StorageError.exit_code:
                raise StorageError(str(self.run.root), f"the worker of {self.stage} could not write: {tail.strip()}")
            raise WorkerFailed(f"the worker of {self.stage} ended without a result\n{tail}")
        return record


def main(argv: list[str]) -> int:
    """Entry of a worker process: ``ROOT JOB STAGE ARGUMENTS``."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == 1:
        return 1
    root, job, stage, arguments = Path(argv[0]), argv[1], argv[2], json.loads(argv[3])
    stored = json.loads((root / "recipe.json").read_text())["recipe"]
    run = RunDirectory(root, QuickstartRecipe.model_validate({**stored, "out": str(root)}), owner=False)
    try:
        run.finish(stage, JOBS[job](run, arguments))
    except (StorageError, OSError) as error:
        if isinstance(error, OSError) and error.errno not in STORAGE_ERRNOS:
            raise
        sys.stderr.write(f"{error}\n")
        return StorageError.exit_code
    return 0


def _oracles(run: RunDirectory, arguments: Mapping[str, Any]) -> dict[str, Any]:
    from journeyman.ladder.oracles import prove
    from journeyman.ladder.prepare import SCORED_SPLITS
    from journeyman.ladder.workshop import Workshop

    workshop = Workshop(run)
    return prove(workshop, [task for split in SCORED_SPLITS for task in workshop.tasks(split)])


def _ablation_arms(run: RunDirectory, arguments: Mapping[str, Any]) -> dict[str, Any]:
    from journeyman.ladder.steps.ablate import run_arm

    for aggregation, seed in arguments["arms"]:
        run_arm(run, str(aggregation), int(seed))
    return {"n_arms": len(arguments["arms"])}


def _evaluations(run: RunDirectory, arguments: Mapping[str, Any]) -> dict[str, Any]:
    from journeyman.ladder.bench import Bench
    from journeyman.ladder.evaluate import Evaluation
    from journeyman.ladder.workshop import Workshop

    bench = Bench(Workshop(run), lambda line: None)
    for fields in arguments["evaluations"]:
        bench.evaluate(Evaluation(**fields), is_recorded=True)
    return {"n_evaluations": len(arguments["evaluations"])}


JOBS: dict[str, Callable[[RunDirectory, Mapping[str, Any]], dict[str, Any]]] = {
    "oracles": _oracles,
    "ablation-arms": _ablation_arms,
    "evaluations": _evaluations,
}
"""What a worker may do."""

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
