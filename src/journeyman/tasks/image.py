"""What of a task's image a sandbox without images can give: the working directory and the files that are copied in.

A Dockerfile's WORKDIR, COPY and ENV lines are honoured; RUN lines and base images are not, and are named: where a task
needs them, it needs a provider with images.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from journeyman.errors import InputError
from journeyman.sandbox.protocol import AGENT_ROOT, Mount
from journeyman.tasks.task import Task

DEFAULT_WORKDIR = "/ws"
RESERVED = ("bin", "dev", "etc", "lib", "lib64", "logs", "proc", "sbin", "solution", "sys", "tests", "usr")
"""Directories that are the sandbox's, or Harbor's, own."""
PLAIN_RUN = ("mkdir ", "chmod ", "pip install --no-cache-dir --target /opt/agent/lib")
"""Beginnings of RUN lines that the agent environment and the sandbox make true without running them."""


@dataclass(frozen=True)
class Image:
    """Attributes:
    workdir: absolute.
    copies: directory or file of the environment directory -> absolute target; the agent environment is left out.
    env: variables; PATH is left to the sandbox.
    missing: instructions that are not honoured.
    """

    workdir: str = DEFAULT_WORKDIR
    copies: tuple[tuple[Path, str], ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()


def image_of(task: Task) -> Image:
    """The image of a task's environment, as far as a plain sandbox can be it.

    Raises:
        InputError: a COPY leaves the environment directory, or names what is not there.
    """
    root = task.path / "environment"
    workdir, copies, env, missing = DEFAULT_WORKDIR, [], {}, []
    path = root / "Dockerfile"
    for line in _lines(path.read_text(encoding="utf-8", errors="replace")) if path.is_file() else ():
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        match word.upper():
            case "WORKDIR":
                workdir = str(PurePosixPath(workdir) / rest)
            case "COPY" if not rest.startswith("--"):
                copies += _copies(root, rest, workdir, path)
            case "ENV":
                name, _, value = rest.partition("=")
                env[name.strip()] = value.strip().strip('"')
            case "FROM" | "CMD" | "ENTRYPOINT" | "LABEL" | "EXPOSE" | "SHELL" | "ARG":
                pass
            case _ if word.upper() == "RUN" and all(part.strip().startswith(PLAIN_RUN) for part in rest.split("&&")):
                pass
            case _:
                missing.append(line)
    env.pop("PATH", None)
    return Image(task.config.environment.workdir or workdir, tuple(copies), env, tuple(missing))


def _lines(text: str) -> list[str]:
    joined = text.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def _copies(root: Path, rest: str, workdir: str, dockerfile: Path) -> list[tuple[Path, str]]:
    *sources, target = shlex.split(rest)
    into = PurePosixPath(workdir) / target
    if into.is_relative_to(AGENT_ROOT):
        return []
    found = []
    for source in sources:
        path = root / source.lstrip("/")
        if not path.resolve().is_relative_to(root.resolve()) or not path.exists():
            raise InputError(str(dockerfile), f"COPY {source}: is not there, or leaves environment/")
        is_directory = target.endswith(("/", ".")) or str(into) == workdir or len(sources) > 1
        whole = path.is_dir() or not is_directory
        found.append((path, str(into if whole else into / path.name)))
    return found


def lay_out(image: Image, room: Path) -> tuple[Mount, ...]:
    """Copy what the image copies below ``room`` and return the writable mounts that show it, outermost first.

    Raises:
        InputError: a target that is the root or a directory of the sandbox itself.
    """
    places = {
        image.workdir,
        *(target if source.is_dir() else str(PurePosixPath(target).parent) for source, target in image.copies),
    }
    tops = {
        place for place in places if not any(PurePosixPath(other) in PurePosixPath(place).parents for other in places)
    }
    for top in tops:
        parts = PurePosixPath(top).parts
        if len(parts) < 2 or parts[1] in RESERVED:
            raise InputError("environment", f"{top} cannot be given to a sandbox without images")
        (room / top.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for source, target in image.copies:
        place = room / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, place, dirs_exist_ok=True)
        else:
            shutil.copyfile(source, place)
    return tuple(Mount(room / top.lstrip("/"), top, writable=True) for top in sorted(tops))
