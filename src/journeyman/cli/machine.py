"""What this machine offers, as facts with a fix for each lack: what ``journeyman doctor`` prints.

Nothing heavy is imported here: versions come from package metadata, and torch is asked in a process of its own.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from journeyman.cli.breakdown import EXTRA_OF
from journeyman.cores import usable_cores

DISTRIBUTION = "journeyman"
MIN_PYTHON = (3, 11)
MIN_MEMORY_GB = 4.0
"""What the quickstart may use at most."""
MIN_DISK_GB = 2.0
"""One run with its checkpoints, and room to spare."""
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Limit of the container this runs in, control groups v2 and v1; "max" or a huge number where there is none."""
TORCH_DEADLINE_S = 120.0
"""A cold import of torch has been seen to take 17 s on a small machine."""
ENGINE_NEEDS = {"embedded": ("torch", "transformers")}

Status = Literal["ok", "lack", "note"]


@dataclass(frozen=True)
class Fact:
    """One line of the report.

    Attributes:
        name: what it is about.
        status: ``ok``, ``lack`` (something asked for it and will not get it) or ``note`` (optional, absent).
        text: what was found.
        fix: what to do about it, or None.
        blocks: whether ``journeyman quickstart`` cannot run because of it.
    """

    name: str
    status: Status
    text: str
    fix: str | None = None
    blocks: bool = False


def python_fact() -> Fact:
    """The running interpreter."""
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    if sys.version_info[:2] >= MIN_PYTHON:
        return Fact("python", "ok", text)
    return Fact("python", "lack", text, "install Python 3.11 or newer", blocks=True)


def extra_facts() -> list[Fact]:
    """One line per extra of the package: the versions it brought, or what is missing."""
    facts = []
    for extra, names in extras().items():
        found = {name: version_of(name) for name in names}
        missing = [name for name, version in found.items() if version is None]
        present = ", ".join(f"{name} {version}" for name, version in found.items() if version)
        needed = extra == "train"
        if not missing:
            facts.append(Fact(f"extra [{extra}]", "ok", present))
            continue
        text = f"missing: {', '.join(missing)}" + (f"; present: {present}" if present else "")
        fix = f"pip install '{DISTRIBUTION}[{extra}]'"
        facts.append(Fact(f"extra [{extra}]", "lack" if needed else "note", text, fix, blocks=needed))
    return facts


def extras(requirements: Sequence[str] | None = None) -> dict[str, list[str]]:
    """Distribution names by extra, read from the package's own metadata."""
    lines = importlib.metadata.requires(DISTRIBUTION) if requirements is None else requirements
    found: dict[str, list[str]] = {}
    for line in lines or []:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        extra = re.search(r"""extra\s*==\s*['"]([^'"]+)['"]""", line)
        if name and extra:
            found.setdefault(extra.group(1), []).append(name.group(0))
    return found


def version_of(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def torch_fact() -> Fact:
    """The torch build and its devices, asked in a process of its own: the import is slow and may crash."""
    if version_of("torch") is None:
        return Fact("torch", "lack", "not installed", f"pip install '{DISTRIBUTION}[train]'", blocks=True)
    ask = (
        "import json, torch; print(json.dumps([torch.__version__, torch.version.cuda, "
        "[torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]]))"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", ask], capture_output=True, text=True, check=True, timeout=TORCH_DEADLINE_S
        )
        version, cuda, devices = json.loads(done.stdout)
    except (subprocess.SubprocessError, ValueError) as error:
        last = (getattr(error, "stderr", None) or str(error)).strip().splitlines()[-1:]
        text = f"installed, but its import failed: {''.join(last)}"
        return Fact("torch", "lack", text, "reinstall torch; docs/status.md names tested versions", blocks=True)
    build = f"CUDA {cuda}" if cuda else "CPU only"
    return Fact("torch", "ok", f"{version} ({build}); devices: {', '.join(devices) or 'CPU'}")


def engine_facts() -> list[Fact]:
    """Which engines can be used, judged by what is installed."""
    facts = [Fact("engine scripted", "ok", "always available (oracles and replays)")]
    for engine, needs in ENGINE_NEEDS.items():
        missing = [name for name in needs if version_of(name) is None]
        if missing:
            fix = f"pip install '{DISTRIBUTION}[{EXTRA_OF[missing[0]]}]'"
            facts.append(Fact(f"engine {engine}", "note", f"needs {', '.join(missing)}", fix))
        else:
            facts.append(Fact(f"engine {engine}", "ok", "can be used"))
    return facts


def cpu_fact() -> Fact:
    """CPUs this process may use."""
    return Fact("cpu", "ok", f"{usable_cores()} usable of {os.cpu_count() or 1}")


def memory_fact(meminfo: Path = Path("/proc/meminfo"), limits: Sequence[Path] = MEMORY_LIMITS) -> Fact:
    """Memory that is free for a run now, within the limit of a container if there is one."""
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text().splitlines() if ":" in line)
        free_gb, total_gb = (int(lines[key].split()[0]) / 2**20 for key in ("MemAvailable", "MemTotal"))
    except (OSError, KeyError, ValueError):
        return Fact("memory", "note", "this system does not say how much is free", f"{MIN_MEMORY_GB:g} GiB are needed")
    texts = [path.read_text().strip() for path in limits if path.is_file()]
    limit_gb = min((int(text) / 2**30 for text in texts if text.isdigit()), default=total_gb)
    free_gb, total_gb = min(free_gb, limit_gb), min(total_gb, limit_gb)
    text = f"{free_gb:.1f} GiB free of {total_gb:.1f} GiB"
    if free_gb >= MIN_MEMORY_GB:
        return Fact("memory", "ok", text)
    return Fact("memory", "lack", text, f"the quickstart needs up to {MIN_MEMORY_GB:g} GiB: close other programs")


def disk_fact(directory: Path) -> Fact:
    """Free space where runs would be written."""
    free_gb = shutil.disk_usage(directory).free / 2**30
    text = f"{free_gb:.1f} GiB free in {directory}"
    if free_gb >= MIN_DISK_GB:
        return Fact("disk", "ok", text)
    return Fact("disk", "lack", text, f"free some space ({MIN_DISK_GB:g} GiB) or use --out on another disk")


def sandbox_facts() -> list[Fact]:
    """What the sandbox room found out about this host: the tier that will be used, and each limit it cannot keep."""
    from journeyman.sandbox.oci.engine import Engine, install_hint
    from journeyman.sandbox.probe import probe

    report = probe()
    program = report.program
    parts = [
        f"bubblewrap {program.version} ({program.origin})" if program else "no usable bubblewrap",
        f"user namespaces {_yes(report.has_user_namespaces)}",
        f"system-call filter {_yes(report.has_seccomp)}",
        f"copy-on-write {_yes(report.has_overlay)}",
    ]
    if report.tier == "oci":
        parts = [found.summary for found in report.containers if isinstance(found, Engine)][:1]
    groups = f"cgroup {report.cgroup_kind}; controllers: {', '.join(report.controllers) or 'none'}"
    containers = [
        Fact("sandbox containers", "ok", found.summary)
        if isinstance(found, Engine)
        else Fact("sandbox containers", "note", f"{found.kind}: {found.reason}", found.fix)
        for found in report.containers
    ] or [Fact("sandbox containers", "note", "neither podman nor docker was found", install_hint())]
    return [
        Fact("sandbox tier", "ok" if report.tier != "none" else "lack", f"{report.tier}: {', '.join(parts)}"),
        Fact("sandbox groups", "ok" if report.controllers else "lack", groups),
        *containers,
        *(Fact(f"sandbox {lack.what}", "lack", lack.consequence, lack.fix) for lack in report.lacks),
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"
