"""What a sandbox costs: start, command, kill of a full tree, and calls of tools that parse nothing or an office file.

python benchmarks/sandbox.py [--times 30]

Wall-clock medians, and CPU-seconds of everything involved from a control group. The machine's load is printed beside.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.errors import ExecTimeout
from journeyman.sandbox.protocol import Mount, Provider, SandboxSpec
from journeyman.sandbox.usage import CpuMeter
from journeyman.tools.sandbox_tools import SandboxTools
from journeyman.tools.workbench import tools_environment

LABEL = "bench-sandbox"
TREE = "i=0; while [ $i -lt 40 ]; do sleep 600 & i=$((i+1)); done; wait"
CALLS = {
    "filesystem_list_files": {"path": "/"},
    "search_world": {"query": "pump"},
    "mail_list_mails": {},
    "spreadsheets_read_csv": {"file_path": "rows.csv"},
}


def timed(meter: CpuMeter, work: Callable[[], object], times: int) -> tuple[float, float]:
    """Median wall-clock and mean CPU, both ms."""
    walls, before = [], meter.seconds()
    for _ in range(times):
        started = time.perf_counter()
        work()
        walls.append(time.perf_counter() - started)
    return 1000 * statistics.median(walls), 1000 * (meter.seconds() - before) / times


def show(name: str, wall_ms: float, cpu_ms: float) -> None:
    print(f"| {name} | {wall_ms:.1f} | {cpu_ms:.1f} |", flush=True)


def sandboxes(provider: Provider, meter: CpuMeter, times: int) -> None:
    """Start and end, a command, and the kill of a tree of 40 processes."""
    spec = SandboxSpec(LABEL, waive=frozenset({"memory", "pids", "disk", "cpus"}) - provider.supports)
    made = []
    show("start of a sandbox", *timed(meter, lambda: made.append(provider.create(spec)), times))
    sandbox = made.pop()
    show("end of a sandbox", *timed(meter, lambda: made.pop().destroy(), len(made)))
    show("exec", *timed(meter, lambda: sandbox.exec("exit 0", deadline_s=10), times))
    kills = []
    for _ in range(5):
        try:
            sandbox.exec(TREE, deadline_s=1.0)
        except ExecTimeout as late:
            kills.append(late.elapsed_s - 1.0)
    show("kill of 40 processes after a deadline", 1000 * statistics.median(kills), float("nan"))
    sandbox.destroy()


def calls(provider: Provider, meter: CpuMeter, times: int, room: Path) -> None:
    """Tool calls that are answered by the program inside, the first of each apart."""
    world = room / "world"
    world.mkdir()
    (world / "rows.csv").write_text("pump,price\nA,1\n")
    mounts = (Mount(world, "/ws", overlay=True),)
    waive = frozenset({"memory", "pids", "disk", "cpus"}) - provider.supports
    spec = SandboxSpec(LABEL, mounts=mounts, environment=tools_environment(room / "environment"), waive=waive)
    sandbox = provider.create(spec)
    tools = SandboxTools(sandbox)
    for name, arguments in CALLS.items():

        def call(name: str = name, arguments: dict[str, str] = arguments) -> None:
            seen = tools.call(name, arguments)
            if seen.is_error:
                raise SystemExit(f"{name}: {seen.text}")

        show(f"{name}, first", *timed(meter, call, 1))
        show(name, *timed(meter, call, times))
    sandbox.destroy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=30)
    options = parser.parse_args()
    provider = PROVIDERS["bwrap"]()
    meter = CpuMeter.start(LABEL)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; CPU from {meter.source}")
    print("| what | wall ms, median | CPU ms |")
    print("|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="bench-sandbox-") as room:
        sandboxes(provider, meter, options.times)
        calls(provider, meter, options.times, Path(room))
    meter.close()


if __name__ == "__main__":
    main()
