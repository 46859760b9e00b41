"""A task's own solution run in a sandbox and graded: the proof that a task, ours or imported, can be solved here.

The solution works where the image's files lie. When it has ended its sandbox is destroyed, so nothing of it runs on;
the verifier gets a fresh one: with ``separate`` the collected artifacts alone, with ``shared`` also the directories the
solution worked in, copy-on-write. What a solution leaves elsewhere (installed packages, ``/tmp``) is not carried over.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath

from journeyman.errors import InputError
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, SandboxSpec
from journeyman.sandbox.scratch import scratch
from journeyman.tasks.artifacts import Artifacts, read_artifacts
from journeyman.tasks.harbor import verify_in_sandbox
from journeyman.tasks.image import Image, image_of, lay_out
from journeyman.tasks.results.manifest import CONVENTION, ManifestEntry, collected, place_of
from journeyman.tasks.steps import SteppedTask, ends_after, verdict_of_steps
from journeyman.tasks.task import Task
from journeyman.tasks.task_sections import Artifact
from journeyman.tasks.verdict import Verdict

SOLVE_DEADLINE_S = 600.0
MEMORY_MB, DISK_MB = 2048, 1024


@dataclass(frozen=True)
class Proof:
    """How a solution fared.

    Attributes:
        verdict: of the task; of several steps the whole.
        steps: verdicts of the steps that ran; one for a task of one step.
        exit_codes: of the solutions.
        manifest: what was collected, of the last step.
        stopped: why later steps did not run, or None.
        missing: what of the image a plain sandbox does not have.
    """

    verdict: Verdict
    steps: tuple[Verdict, ...]
    exit_codes: tuple[int, ...]
    manifest: tuple[ManifestEntry, ...]
    stopped: str | None
    missing: tuple[str, ...]


def prove(
    task: Task | SteppedTask,
    provider: Provider,
    environment: AgentEnvironment,
    *,
    label: str = "oracle",
    waive: frozenset[str] = frozenset(),
) -> Proof:
    """Run the solution of a task, step by step where it has several, and grade what it leaves.

    Raises:
        InputError: the task has no ``solution/solve.sh``, or its image cannot be given to a sandbox.
        SandboxFault: the solution's sandbox did not start, was lost or passed its deadline.
    """
    steps = (task,) if isinstance(task, Task) else task.steps
    thresholds = ({},) if isinstance(task, Task) else task.thresholds
    image = image_of(steps[0])
    verdicts: list[Verdict] = []
    codes: list[int] = []
    stopped: str | None = None
    manifest: tuple[ManifestEntry, ...] = ()
    with scratch(label) as room:
        mounts = (*lay_out(image, room / "fs"), *_logs(room))
        for number, (step, least) in enumerate(zip(steps, thresholds, strict=True)):
            _step_files(step, room / "fs", image)
            codes.append(_solve(step, image, mounts, provider, environment, label, waive))
            kept = room / f"collected-{number}"
            manifest = collect(step.config.artifacts, room, image, kept)
            verdicts.append(_grade(step, image, mounts, kept, provider, environment, label, waive))
            reward = verdicts[-1].reward
            stopped = ends_after(least, {} if reward is None else {"reward": reward})
            if stopped:
                break
    strategy = "final" if isinstance(task, Task) else task.strategy
    return Proof(verdict_of_steps(verdicts, strategy), tuple(verdicts), tuple(codes), manifest, stopped, image.missing)


def _logs(room: Path) -> tuple[Mount, ...]:
    found = []
    for name in ("agent", "artifacts", "verifier"):
        (room / "fs" / "logs" / name).mkdir(parents=True, exist_ok=True)
        if name != "verifier":  # the verifier's own directory is one that nothing of the agent ever saw
            found.append(Mount(room / "fs" / "logs" / name, f"/logs/{name}", writable=True))
    return tuple(found)


def _step_files(step: Task, root: Path, image: Image) -> None:
    """A step's ``workdir/`` into the working directory."""
    files = step.path / "steps" / (step.step or "") / "workdir"
    if step.step is not None and files.is_dir():
        shutil.copytree(files, root / image.workdir.lstrip("/"), dirs_exist_ok=True)


def _solution(step: Task) -> Path:
    own = step.path / "steps" / (step.step or "") / "solution"
    found = own if step.step is not None and own.is_dir() else step.path / "solution"
    if not (found / "solve.sh").is_file():
        raise InputError(str(step.path), "has no solution/solve.sh to run")
    return found


def _solve(
    step: Task,
    image: Image,
    mounts: Sequence[Mount],
    provider: Provider,
    environment: AgentEnvironment,
    label: str,
    waive: frozenset[str],
) -> int:
    plain = {name: value for name, value in step.config.solution.env.items() if "${" not in value}
    spec = SandboxSpec(
        label=label,
        mounts=(*mounts, Mount(_solution(step).absolute(), "/solution")),
        environment=environment,
        cwd=image.workdir,
        env={**image.env, **plain, "LOGS_DIR": "/logs"},
        memory_mb=step.config.environment.memory_limit_mb or MEMORY_MB,
        disk_mb=step.config.environment.storage_mb or DISK_MB,
        waive=waive,
    )
    limit_s = step.agent_timeout_s or SOLVE_DEADLINE_S
    sandbox = provider.create(spec)
    try:
        if step.step is not None and (step.path / "steps" / step.step / "workdir" / "setup.sh").is_file():
            sandbox.exec(["sh", "setup.sh"], deadline_s=limit_s)
        return sandbox.exec(["sh", "/solution/solve.sh"], deadline_s=limit_s).return_code
    finally:
        sandbox.destroy()


def _grade(
    step: Task,
    image: Image,
    mounts: Sequence[Mount],
    kept: Path,
    provider: Provider,
    environment: AgentEnvironment,
    label: str,
    waive: frozenset[str],
) -> Verdict:
    shown: Artifacts = read_artifacts(kept / CONVENTION.lstrip("/")) if (kept / CONVENTION.lstrip("/")).is_dir() else {}
    if step.config.verifier_mode() == "shared":
        state = [replace(m, writable=False, overlay=True) for m in mounts if not m.target.startswith("/logs/")]
    else:
        state = _separate(step.config.artifacts, kept)
    return verify_in_sandbox(
        step, shown, provider, environment, label=label, waive=waive, state=tuple(state), cwd=image.workdir
    )


def _separate(artifacts: Sequence[Artifact], kept: Path) -> list[Mount]:
    """The collected artifacts at the places they were taken from, for a verifier that sees nothing else."""
    found = []
    for artifact in artifacts:
        path, source = kept.joinpath(*place_of(artifact).parts), artifact.source
        is_of_logs = source.startswith("/logs/")
        if artifact.service == "main" and source.startswith("/") and path.exists() and not is_of_logs:
            found.append(Mount(path, source.rstrip("/")))
    return found


def collect(artifacts: Sequence[Artifact], room: Path, image: Image, kept: Path) -> tuple[ManifestEntry, ...]:
    """Copy the artifacts from where the agent left them to ``kept``; links are not followed and not kept.

    Args:
        room: its ``fs`` holds the directories the agent wrote in, by their paths inside.

    Returns:
        an entry per artifact: ``ok``, ``empty``, ``failed`` (absent) or ``skipped`` (of a service there is none of, or
        in the place of an earlier one).
    """
    entries: list[ManifestEntry] = []
    taken: list[PurePosixPath] = []
    for artifact in collected(artifacts):
        inside = PurePosixPath(image.workdir) / artifact.source
        place = place_of(artifact)
        source, target = room / "fs" / str(inside).lstrip("/"), kept.joinpath(*place.parts)
        clash = any(place == other or place in other.parents or other in place.parents for other in taken)
        if artifact.service != "main" or clash:
            status = "skipped"
        else:
            status = _take(source, target, artifact.exclude)
            taken.append(place)
        kind = "directory" if source.is_dir() else "file"
        values = {"source": artifact.source, "destination": f"artifacts/{place}", "type": kind, "status": status}
        entries.append(ManifestEntry.model_validate({**values, "exclude": list(artifact.exclude)}))
    return tuple(entries)


def _take(source: Path, target: Path, exclude: Sequence[str]) -> str:
    if source.is_symlink() or not source.exists():
        return "failed"
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        return "ok"

    def left_out(directory: str, names: list[str]) -> set[str]:
        inside = Path(directory)
        odd = {n for n in names if (inside / n).is_symlink() or not ((inside / n).is_file() or (inside / n).is_dir())}
        return odd | {name for name in names if any(fnmatch(name, pattern) for pattern in exclude)}

    shutil.copytree(source, target, ignore=left_out, dirs_exist_ok=True)
    return "ok" if any(target.rglob("*")) else "empty"
