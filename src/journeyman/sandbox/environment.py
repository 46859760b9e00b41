"""The agent environment: a directory built apart, with what may be used inside a sandbox and nothing else.

Layout: ``bin/`` (programs, ``python3``), ``lib/`` (distributions and packages), ``forkserver.py``. It is copied from
the running interpreter, so it works without a network; its digest names everything that went in. It is built under a
temporary name and published by one rename: whoever sees it sees all of it. It never holds ``journeyman``.
"""

from __future__ import annotations

import compileall
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path, PurePosixPath

from journeyman.digest import directory_sha256, sha256_file, sha256_json
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox.interpreter import interpreter
from journeyman.sandbox.protocol import AGENT_ROOT, AgentEnvironment

#: Changes when the layout does, so that old environments are not reused.
_LAYOUT = 1
_FORKSERVER = Path(__file__).parent / "inside" / "forkserver.py"
_FORBIDDEN = "journeyman"
#: ``name`` and ``marker`` of a requirement like ``pillow>=9.1; extra == "x"``.
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)[^;]*(?:;\s*(.*))?$", re.DOTALL)


def forkserver_entry(
    function: str, *, memory_mb: int = 0, deadline_s: float = 0.0, file_mb: int | None = None
) -> tuple[str, ...]:
    """``SandboxSpec.entry`` that serves ``module:function`` of the environment's ``lib``, each call in its own child.

    Args:
        function: ``module:function``, mapping bytes to bytes.
        memory_mb: address space of one call, 0 for no bound of its own.
        deadline_s: wall-clock of one call, 0 for no bound of its own.
        file_mb: largest file one call may write; 0 forbids writing, so that no call leaves anything to a later one.
    """
    words = [f"{AGENT_ROOT}/bin/python3", "-I", "-S", f"{AGENT_ROOT}/forkserver.py", "--path", f"{AGENT_ROOT}/lib"]
    if memory_mb:
        words += ["--memory-mb", str(memory_mb)]
    if deadline_s:
        words += ["--deadline-s", f"{deadline_s:g}"]
    if file_mb is not None:
        words += ["--file-mb", str(file_mb)]
    return (*words, function)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def requirement_closure(names: Sequence[str]) -> dict[str, metadata.Distribution]:
    """The named distributions and everything they require here, by normalised name.

    Requirements behind an ``extra`` are left out; those behind other markers count when they are installed.

    Raises:
        EnvironmentMissing: a named distribution, or one it requires without a marker, is not installed.
        InputError: journeyman would be part of it.
    """
    found: dict[str, metadata.Distribution] = {}
    queue = [(name, True) for name in names]
    while queue:
        name, is_needed = queue.pop()
        key = _normal(name)
        if key in found:
            continue
        if key == _FORBIDDEN:
            raise InputError("sandbox environment", "journeyman itself may not be part of an agent environment")
        try:
            distribution = metadata.distribution(name)
        except metadata.PackageNotFoundError:
            if is_needed:
                raise EnvironmentMissing(
                    f"the agent environment needs {name}, which is not installed here; pip install {name}"
                ) from None
            continue
        found[key] = distribution
        for text in distribution.requires or ():
            match = _REQUIREMENT.match(text)
            if match is not None and "extra" not in (match[2] or ""):
                queue.append((match[1], match[2] is None))
    return dict(sorted(found.items()))


def _files(distribution: metadata.Distribution) -> Iterator[tuple[PurePosixPath, Path]]:
    """(path below site-packages, file) of a distribution's RECORD, without scripts outside it."""
    files = distribution.files
    if not files:
        name = distribution.metadata["Name"]
        raise EnvironmentMissing(f"{name} has no RECORD of its files, so it cannot be copied; reinstall it with pip")
    for file in files:
        if ".." not in file.parts and not file.is_absolute():
            path = Path(str(distribution.locate_file(file)))
            if path.is_file():
                yield PurePosixPath(*file.parts), path


def _key(
    distributions: Mapping[str, metadata.Distribution], packages: Mapping[str, Path], programs: Mapping[str, str]
) -> str:
    records = {
        name: [d.version, [(str(path), file.hash.value if file.hash else "") for path, file in _hashed(d)]]
        for name, d in distributions.items()
    }
    return sha256_json(
        {
            "layout": _LAYOUT,
            "python": [sys.version, interpreter().program],
            "distributions": records,
            "packages": {name: _source_digest(path) for name, path in sorted(packages.items())},
            "programs": dict(sorted(programs.items())),
            "forkserver": sha256_file(_FORKSERVER),
        }
    )


def _hashed(distribution: metadata.Distribution) -> Iterator[tuple[PurePosixPath, metadata.PackagePath]]:
    for file in distribution.files or ():
        if file.suffix != ".pyc":
            yield PurePosixPath(*file.parts), file


def _source_digest(path: Path) -> str:
    if path.is_file():
        return sha256_file(path)
    files = sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return sha256_json([(p.relative_to(path).as_posix(), sha256_file(p)) for p in files])


def build_environment(
    root: Path,
    *,
    distributions: Sequence[str] = (),
    packages: Mapping[str, Path] | None = None,
    programs: Mapping[str, str] | None = None,
) -> AgentEnvironment:
    """Build an agent environment below ``root``, or find the one that was built from the same parts.

    Args:
        root: directory that holds environments; the path of a mount's source can be seen inside, so it names no secret.
        distributions: installed distributions, copied with what they require.
        packages: name in ``lib`` -> directory of a package or a module's file.
        programs: name in ``bin`` -> text of the program; ``#!python`` as first line stands for the interpreter inside.

    Raises:
        EnvironmentMissing: a distribution is not installed.
        InputError: journeyman would be part of it, or a package's source does not exist.
    """
    packages, programs = dict(packages or {}), dict(programs or {})
    for name, path in packages.items():
        if name == _FORBIDDEN or path.resolve() == Path(__file__).parents[1]:
            raise InputError("sandbox environment", "journeyman itself may not be part of an agent environment")
        if not path.exists():
            raise InputError("sandbox environment", f"package {name}: {path} does not exist")
    closure = requirement_closure(distributions)
    digest = _key(closure, packages, programs)
    final = root / digest[:16]
    if not (final / "bin" / "python3").is_symlink():
        root.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=".building-", dir=root))
        try:
            _fill(staging, closure, packages, programs)
            staging.chmod(0o755)
            try:
                staging.rename(final)
            except OSError:
                if not final.is_dir():  # else another process published the same one meanwhile
                    raise
        finally:
            shutil.rmtree(staging, ignore_errors=True)
    return AgentEnvironment(final, digest)


def _fill(
    staging: Path,
    closure: Mapping[str, metadata.Distribution],
    packages: Mapping[str, Path],
    programs: Mapping[str, str],
) -> None:
    library, binaries = staging / "lib", staging / "bin"
    library.mkdir()
    binaries.mkdir()
    made: set[Path] = set()
    for distribution in closure.values():
        for relative, source in _files(distribution):
            target = library / relative
            if target.parent not in made:
                target.parent.mkdir(parents=True, exist_ok=True)
                made.add(target.parent)
            shutil.copy2(source, target)
    for name, source in packages.items():
        if source.is_file():
            shutil.copy2(source, library / f"{name}.py")
        else:
            try:
                shutil.copytree(source, library / name, ignore=shutil.ignore_patterns("__pycache__"))
            except shutil.Error as error:
                raise InputError("sandbox environment", f"package {name} cannot be copied: {error}") from error
    if (library / _FORBIDDEN).exists():
        raise InputError("sandbox environment", "journeyman itself may not be part of an agent environment")
    # compiled here, since nothing inside may write; files that pip compiled keep their times and are skipped
    compileall.compile_dir(library, quiet=2, stripdir=str(library), prependdir=f"{AGENT_ROOT}/lib")
    shutil.copyfile(_FORKSERVER, staging / "forkserver.py")
    python = interpreter().program
    for name, text in programs.items():
        program = binaries / name
        program.write_text(
            text.replace("#!python", f"#!{AGENT_ROOT}/bin/python3", 1) if text[:8] == "#!python" else text
        )
        program.chmod(0o755)
    (staging / "digest").write_text(directory_sha256(library) + "\n")
    for name in ("python3", "python"):
        if not (binaries / name).exists():
            (binaries / name).symlink_to(python)
