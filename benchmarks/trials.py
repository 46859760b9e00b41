"""CPU-seconds per trial and per tool call on a trivial scripted task: ours beside Harbor and ``verifiers``.

python benchmarks/trials.py [--harbor PYTHON] [--verifiers PYTHON] [--trials N] [--calls K] [--rounds R]

The task: a sandbox with one file, K shell commands, a written answer, a graded reward. Harbor drives the same
bubblewrap sandboxes through a small ``BaseEnvironment`` (``trials_harbor.py``). Each side runs in a process of its own
that is born in a control group; seconds are that group's, imports and start-up taken off by running two numbers of
trials. Ours brokers every turn through an engine and writes every record durably; the others sample nothing.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from trials_place import STOP, write_trivial

from journeyman.engines.scripted import ScriptedEngine
from journeyman.evals.clustered import t_quantile
from journeyman.harness import HARNESSES
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.bwrap_binary import find_bwrap
from journeyman.sandbox.environment import build_environment
from journeyman.tasks.task import load_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.protocol import WorkplaceRecipe
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import Owner

HERE = Path(__file__).resolve().parent
LIMITS = frozenset({"memory", "pids", "disk", "cpus"})
Command = Callable[[int, int], list[str]]
"""(trials, calls) -> a command line."""


@dataclass(frozen=True)
class Cost:
    """CPU-seconds of one side: of a trial without a tool call, and of one more tool call."""

    name: str
    per_trial_s: float
    per_call_s: float
    per_trial_wall_s: float


def ours(task: Path, trials: int, calls: int, concurrency: int, out: Path) -> None:
    """Our side, in this process."""
    provider = PROVIDERS["bwrap"]()
    waive = LIMITS - provider.supports
    environment = build_environment(out.parent / "environment", distributions=(), packages={}, programs={})
    loaded = load_task(task)
    requests = [TrialRequest(loaded, HARNESSES["react"], ("bench", n), n) for n in range(trials)]
    engine = ScriptedEngine({request.trial_id: [[9, STOP]] * (calls + 1) for request in requests})
    arguments = {"label": "bench-trials", "calls": calls, "waive": sorted(waive)}
    with (
        Owner(out) as owner,
        BatchVerifier(provider, environment, "bench-trials", waive=waive, one_batch=True) as verifier,
        ProcessExecutor(
            engine,
            WorkplaceRecipe("trials_place:ShellPlace", arguments),
            seed=0,
            concurrency=concurrency,
            owner=owner,
        ) as executor,
    ):
        ended = executor.run(requests, verifier)
    if [trial.reward for trial in ended] != [1.0] * trials:
        raise SystemExit(f"a trial was not solved: {[(t.error, t.verdict) for t in ended if t.reward != 1.0][:2]}")


def spent(words: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command and all it starts."""
    script = "import sys; from journeyman.sandbox.usage import CpuMeter; import subprocess, time\n"
    script += "m = CpuMeter.start('bench'); t = time.monotonic(); r = subprocess.run(sys.argv[1:]).returncode\n"
    script += "w = time.monotonic() - t; s = m.seconds(); print(r, s, w, m.is_exact); m.close()"
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{HERE.parent / 'src'}:{HERE}", "OMP_NUM_THREADS": "1"},
        timeout=1200,
        check=True,
    )
    code, seconds, wall, is_exact = done.stdout.split()[-4:]
    if code != "0" or is_exact != "True":
        raise SystemExit(f"{words}: status {code}, exact {is_exact}")
    return float(seconds), float(wall)


def cost_of(name: str, command: Callable[[int, int], list[str]], trials: int, calls: int) -> Cost:
    """Slopes from three runs: few trials, many trials, many trials with tool calls."""
    few, few_wall = spent(command(4, 0))
    many, many_wall = spent(command(4 + trials, 0))
    called, _ = spent(command(4 + trials, calls))
    return Cost(
        name,
        (many - few) / trials,
        (called - many) / ((4 + trials) * calls),
        (many_wall - few_wall) / trials,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--harbor", help="python of an environment with harbor")
    parser.add_argument("--verifiers", help="python of an environment with verifiers")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--calls", type=int, default=20)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=0, help="also compare with Harbor so often, side by side in turn")
    parser.add_argument("--ours", nargs=5, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.ours:
        task, trials, calls, concurrency, out = options.ours
        ours(Path(task), int(trials), int(calls), int(concurrency), Path(out))
        return
    room = Path(tempfile.mkdtemp(prefix="bench-trials-"))
    try:
        report(options, room)
    finally:
        shutil.rmtree(room, ignore_errors=True)


def report(options: argparse.Namespace, room: Path) -> None:
    """Measure every side that is there and print the ratios."""
    program = find_bwrap()
    os.environ["JOURNEYMAN_BWRAP"] = str(program.path) if program is not None else ""
    task = write_trivial(room / "task", batch=True).path
    script_task = write_trivial(room / "script-task", batch=False).path

    def run(words: list[str], of: Path) -> Callable[[int, int], list[str]]:
        def command(trials: int, calls: int) -> list[str]:
            out = room / f"out-{time.monotonic_ns()}"
            return [*words, str(of), str(trials), str(calls), str(options.concurrency), str(out)]

        return command

    own = [sys.executable, str(HERE / "trials.py"), "--ours"]
    costs = [
        cost_of("journeyman process", run(own, task), options.trials, options.calls),
        cost_of("journeyman process, test.sh in a fresh sandbox", run(own, script_task), options.trials, options.calls),
    ]
    if options.harbor:
        words = [options.harbor, str(HERE / "trials_harbor.py")]
        costs.append(cost_of("harbor", run(words, task), options.trials, options.calls))
    if options.verifiers:
        words = [options.verifiers, str(HERE / "trials_verifiers.py")]
        costs.append(cost_of("verifiers", run(words, task), options.trials, options.calls))
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.trials} trials, {options.calls} calls each")
    print("| side | CPU ms per trial | CPU ms per tool call | wall ms per trial | CPU per trial against ours |")
    print("|---|---|---|---|---|")
    for cost in costs:
        ratio = cost.per_trial_s / costs[0].per_trial_s
        print(
            f"| {cost.name} | {1000 * cost.per_trial_s:.1f} | {1000 * cost.per_call_s:.2f} "
            f"| {1000 * cost.per_trial_wall_s:.0f} | {ratio:.2f}x |"
        )
    if options.harbor and options.rounds > 1:
        harbor = [options.harbor, str(HERE / "trials_harbor.py")]
        in_turn(run(own, task), run(harbor, task), options.trials, options.rounds)


def in_turn(
    ours: Callable[[int, int], list[str]], harbor: Callable[[int, int], list[str]], n: int, rounds: int
) -> None:
    """Cost of a trial on both sides, round by round, and the ratio of the means: one run alone is off by a quarter."""
    costs: list[tuple[float, float]] = []
    for _ in range(rounds):
        a, b = ((spent(side(4 + n, 0))[0] - spent(side(4, 0))[0]) * 1000 / n for side in (ours, harbor))
        costs.append((a, b))
        print(f"ours {a:.1f}, Harbor {b:.1f} CPU ms per trial: {b / a:.2f}x", flush=True)
    mean_a, mean_b = (statistics.mean(column) for column in zip(*costs, strict=True))
    ratios = [b / a for a, b in costs]
    half = t_quantile(0.95, rounds - 1) * statistics.stdev(ratios) / rounds**0.5
    mean = statistics.mean(ratios)
    print(f"{rounds} rounds: {mean_a:.1f} against {mean_b:.1f}, {mean_b / mean_a:.2f}x")
    print(f"mean of the ratios {mean:.2f} [{mean - half:.2f}, {mean + half:.2f}]")


if __name__ == "__main__":
    main()
