"""What a container's file system starts from.

On this kernel it is a directory of some empty folders, with the host's ``/usr`` mounted into it as ``bwrap`` shows it:
nothing is built, pulled or copied. podman takes the directory itself (``--rootfs``), docker a small image made of it.
Elsewhere (a virtual machine of macOS) it is an image with Python, pulled once; ``JOURNEYMAN_OCI_IMAGE`` names another.
"""

from __future__ import annotations

import io
import os
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

from journeyman.deadline import Deadline
from journeyman.digest import directory_sha256
from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.interpreter import interpreter, system_masks
from journeyman.sandbox.oci.engine import Engine, EngineFailed
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.recipe import ETC

#: Seconds that pulling an image may take.
PULL_S = 600.0
#: Where the sources of copy-on-write mounts lie until they are copied.
LOWER = "/opt/lower"
_SYSTEM = ("/usr/bin", "/usr/lib", "/usr/lib64")
_ROOT_LINKS = ("/bin", "/lib", "/lib64")
_FOLDERS = ("dev", "etc", "opt", "proc", "run", "sys", "usr")


def chosen_image(engine: Engine) -> str | None:
    """The image to use, None for the host's own programs."""
    named = os.environ.get("JOURNEYMAN_OCI_IMAGE")
    if named or engine.is_local:
        return named or None
    return f"docker.io/library/python:{sys.version_info[0]}.{sys.version_info[1]}-slim"


def ensure_image(engine: Engine, image: str) -> None:
    """Pull an image that is not there. Raises EnvironmentMissing with what to do."""
    deadline = Deadline.after(PULL_S, f"pull of {image}")
    try:
        engine.run("image", "inspect", image, deadline=deadline)
    except EngineFailed:
        try:
            engine.run("pull", "--quiet", image, deadline=deadline)
        except EngineFailed as error:
            raise EnvironmentMissing(
                f"the image {image} for sandboxes is not here and cannot be pulled ({error}); "
                "name one that is here and has Python with JOURNEYMAN_OCI_IMAGE"
            ) from error


def system_mounts() -> Iterator[tuple[str, str]]:
    """(source, target) of the host's programs and libraries."""
    for path in (*_SYSTEM, *_ROOT_LINKS):
        if Path(path).is_dir() and not Path(path).is_symlink():
            yield path, path


def python_mounts() -> tuple[tuple[str, str], ...]:
    """(source, target) of the interpreter, where it does not lie under /usr."""
    return interpreter().mounts


def masks(*, with_python: bool) -> tuple[str, ...]:
    """Directories of packages that are replaced by empty ones."""
    return (*system_masks(), *(interpreter().masks if with_python else ()))


def lay_out(root: Path, spec: SandboxSpec | None) -> None:
    """Make the folders, links and files of a root; with those that the mounts of ``spec`` need."""
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in _FOLDERS:
        (root / name).mkdir()
    for path in (*_SYSTEM, *_ROOT_LINKS):
        place = root / path.lstrip("/")
        if Path(path).is_symlink():
            place.symlink_to(os.readlink(path))  # noqa: PTH115 - the link's own text
        elif Path(path).is_dir():
            place.mkdir()
    for name, data in ETC.items():
        (root / "etc" / name).write_bytes(data)
    open_folders = ["/tmp"] if spec is None else ["/tmp", spec.cwd]
    for target in open_folders:  # a tmpfs takes the mode of the folder it covers
        place = root / target.lstrip("/")
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o1777)


def skeleton_image(engine: Engine, deadline: Deadline) -> str:
    """The image of an empty root, named by its content; made when it is not there. Raises EngineFailed."""
    with tempfile.TemporaryDirectory(prefix="journeyman-skeleton-") as place:
        root = Path(place) / "root"
        lay_out(root, None)
        name = f"localhost/journeyman-skeleton:{directory_sha256(root)[:16]}"
        try:
            engine.run("image", "inspect", name, deadline=deadline)
        except EngineFailed:
            engine.run("import", "-", name, deadline=deadline, stdin=_tar(root))
    return name


def _tar(root: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.add(root, arcname=".")
    return buffer.getvalue()
