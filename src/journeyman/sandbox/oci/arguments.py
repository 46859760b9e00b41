"""The words of ``run`` for a sandbox, and the script that its first process begins with.

What names a run, a variable or an entry program travels through standard input, so no command line shows it.
"""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

from journeyman.errors import InputError
from journeyman.sandbox import shell
from journeyman.sandbox.cgroup import OWN_PROCESSES
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.oci import names, root
from journeyman.sandbox.oci.engine import Engine
from journeyman.sandbox.protocol import AGENT_ROOT, Mount, SandboxSpec
from journeyman.sandbox.recipe import USER_ID, environment_variables

#: Reads the length of the real script, then the script: no byte more, since frames or commands follow it.
BOOT = ("/bin/sh", "-c", 'read -r n; script=$(head -c "$n"); eval "$script"')
#: First host id of those that stand for the other users inside, as podman's own defaults for system users.
_OTHER_USERS = 200_000
_SHARED_MEMORY = "16m"
#: Soft and hard limits of section 10.1 of the scale reference; a host may allow less.
_ULIMITS = {"nofile": (resource.RLIMIT_NOFILE, 20_000), "nproc": (resource.RLIMIT_NPROC, 30_000)}


def run_words(
    spec: SandboxSpec, engine: Engine, identity: Identity, base: tuple[str, ...], *, is_guest: bool
) -> list[str]:
    """The words after the program's options.

    Args:
        spec: what is asked for.
        engine: the container program.
        identity: whose it is.
        base: what it starts from: ``--rootfs`` and a directory, or an image.
        is_guest: the image brings programs and Python of its own.

    Raises:
        InputError: a mount's source does not exist, or cannot be written as an argument.
    """
    words = ["run", "--rm", "-i", "--name", names.container_name(identity), "--log-driver", "none"]
    words += ["--label", f"{names.MARK}={spec.label}", "--label", f"{names.OWNER}={names.owner_of(identity)}"]
    words += ["--label", f"{names.PLACE}={names.place()}"]
    words += ["--network", "none", "--hostname", "sandbox", "--read-only", "--cap-drop", "all"]
    words += ["--security-opt", "no-new-privileges", "--security-opt", "label=disable", "--stop-timeout", "0"]
    words += ["--shm-size", _SHARED_MEMORY, "--workdir", spec.cwd]
    words += _podman_words(engine, identity) if engine.kind == "podman" else ["--pull", "never"]
    words += [*_user(engine, has_own_root=base[0] == "--rootfs"), *_limits(spec, engine)]
    for target, size_mb in tmpfs_sizes(spec):
        words += _tmpfs(engine, target, size_mb)
    for source, target, writable in _binds(spec, is_guest=is_guest):
        words += ["--mount", _bind(source, target, writable=writable)]
    if not is_guest:
        for path in root.masks(with_python=spec.environment is not None):
            words += ["--mount", _bind(str(names.directory_of(identity) / "empty"), path, writable=False)]
    return [*words, *base, *BOOT]


def _tmpfs(engine: Engine, target: str, size_mb: int) -> list[str]:
    """A work area, from which programs can be run: docker forbids that unless it is told otherwise."""
    if engine.kind == "podman":
        options = f"tmpfs-size={size_mb}m,tmpfs-mode=1777,notmpcopyup"
        return ["--mount", f"type=tmpfs,destination={target},{options}"]
    return ["--tmpfs", f"{target}:rw,exec,nosuid,nodev,size={size_mb}m,mode=1777"]


def _podman_words(engine: Engine, identity: Identity) -> list[str]:
    words = ["--read-only-tmpfs=false", "--no-hosts", "--passwd=false", "--sig-proxy=false", "--pull", "never"]
    words += ["--security-opt", "mask=/sys/fs/cgroup"]
    if engine.is_local:
        directory = names.directory_of(identity)
        words += ["--pidfile", f"{directory}/pid", "--security-opt", f"seccomp={directory}/seccomp.json"]
    return words


def _user(engine: Engine, *, has_own_root: bool) -> list[str]:
    """The caller is user 1000 inside where a user namespace can be had, else it is itself, without capabilities."""
    inside = ["--user", f"{USER_ID}:{USER_ID}"]
    if engine.kind == "podman" and engine.is_rootless:
        return [*inside, "--userns", f"keep-id:uid={USER_ID},gid={USER_ID}"]
    if engine.kind == "docker" or not has_own_root:  # an image's files would have to be mapped: not on every kernel
        return ["--user", f"{os.getuid()}:{os.getgid()}"]
    words = inside
    for option, caller in (("--uidmap", os.getuid()), ("--gidmap", os.getgid())):
        words += [option, f"{USER_ID}:{caller}:1", option, f"0:{_OTHER_USERS}:{USER_ID}"]
        words += [option, f"{USER_ID + 1}:{_OTHER_USERS + USER_ID + 1}:{64_000}"]
    return words


def _limits(spec: SandboxSpec, engine: Engine) -> Iterator[str]:
    if "memory" in engine.limits:
        yield from ("--memory", f"{spec.memory_mb}m", "--memory-swap", f"{spec.memory_mb}m")
    if "pids" in engine.limits:
        yield from ("--pids-limit", str(spec.pids + OWN_PROCESSES))
    if spec.cpus is not None and "cpus" in engine.limits:
        yield from ("--cpus", f"{spec.cpus:g}")
    for name, (kind, wanted) in _ULIMITS.items():
        hard = resource.getrlimit(kind)[1]
        value = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        yield from ("--ulimit", f"{name}={value}:{value}")


def overlays(spec: SandboxSpec) -> list[tuple[Mount, str]]:
    """Copy-on-write mounts with the place where their source can be read."""
    return [(mount, f"{root.LOWER}/{index}") for index, mount in enumerate(spec.mounts) if mount.overlay]


def tmpfs_sizes(spec: SandboxSpec) -> Iterator[tuple[str, int]]:
    """(path, MiB) of each tmpfs: work areas, and copies of copy-on-write mounts with room for as many changes."""
    targets = [mount.target.rstrip("/") for mount in spec.mounts]
    if "/tmp" not in targets:
        yield "/tmp", spec.disk_mb
    if not any(f"{spec.cwd}/".startswith(f"{target}/") for target in targets):
        yield spec.cwd, spec.disk_mb
    for mount, _ in overlays(spec):
        yield mount.target, spec.disk_mb + _size_mb(mount.source)


def _size_mb(directory: Path) -> int:
    """MiB of the files below a directory, each in whole pages, rounded up."""
    pages = sum((path.lstat().st_size >> 12) + 1 for path in directory.rglob("*"))
    return (pages >> 8) + 1


def _binds(spec: SandboxSpec, *, is_guest: bool) -> Iterator[tuple[str, str, bool]]:
    if not is_guest:
        yield from ((source, target, False) for source, target in root.system_mounts())
    if spec.environment is not None:
        if not is_guest:
            yield from ((source, target, False) for source, target in root.python_mounts())
        yield str(spec.environment.path.resolve()), AGENT_ROOT, False
    for index, mount in enumerate(spec.mounts):
        source = str(mount.source.resolve())  # a virtual machine has links of its own at the root
        if not mount.source.exists():
            raise InputError(f"mount {mount.target}", f"{source} does not exist")
        if not mount.overlay:
            yield source, mount.target, mount.writable
        elif mount.source.is_dir():
            yield source, f"{root.LOWER}/{index}", False
        else:
            raise InputError(f"mount {mount.target}", f"{source} is not a directory, so it cannot be an overlay")


def _bind(source: str, target: str, *, writable: bool) -> str:
    for path in (source, target):
        if "," in path or '"' in path:
            raise InputError(
                f"mount {target}", f"{path!r} holds a comma or a quote, which container programs cannot take"
            )
    return f"type=bind,source={source},destination={target}" + ("" if writable else ",readonly")


def boot_script(spec: SandboxSpec, engine: Engine, *, is_guest: bool) -> bytes:
    """What the first process reads: variables, copies, limits, ``ready``, and what it then becomes."""
    variables = environment_variables(spec)
    if is_guest:
        variables = {name: text for name, text in variables.items() if name != "LD_LIBRARY_PATH"} | dict(spec.env)
        variables["PATH"] = spec.env.get("PATH") or f"{AGENT_ROOT}/bin:/usr/local/bin:/usr/bin:/bin"
    lines = ["unset container TERM HOSTNAME n script"]
    lines += [f"export {name}={shell.quoted(text)}" for name, text in variables.items()]
    for mount, lower in overlays(spec):
        target = shell.quoted(mount.target)
        lines.append(
            f"( cd {lower} && for f in * .[!.]* ..?*; do "
            f'if [ -e "$f" ] || [ -L "$f" ]; then cp -a "$f" {target}/ || exit 1; fi; done ) || exit 96'
        )
    lines.append(f"cd {shell.quoted(spec.cwd)} || exit 97")
    lines.append(
        shell.opening(
            disk_mb=spec.disk_mb,
            pids=None if "pids" in engine.limits else spec.pids + OWN_PROCESSES,
            address_space_mb=None if "memory" in engine.limits else spec.memory_mb,
            entry=spec.entry or ("/bin/sh",),
        ).replace("echo ready >&0", "echo ready")
    )
    script = "\n".join(lines).encode(errors="surrogateescape")
    return b"%d\n%b" % (len(script), script)
