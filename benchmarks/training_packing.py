"""Packing beside verl's and SkyRL's own functions, on lengths of agent trials, in one run.

    git clone https://github.com/verl-project/verl && git -C verl checkout 1dda039b9
    git clone https://github.com/NovaSky-AI/SkyRL && git -C SkyRL checkout a9564572e
    python benchmarks/training_packing.py --verl verl --skyrl SkyRL [--rounds N] [--json FILE]

Lengths: lognormal(log 20000, 0.9), 512 to 131,072 tokens; cap 131,072. Their two files are loaded from the checkouts,
with empty stand-ins for what these import and packing does not use. verl: the Karmarkar-Karp partition it makes
micro-batches with, on its work measure 24576 L + L^2, in as many parts as the tokens need. SkyRL: first fit decreasing
and its balanced packer. CPU milliseconds are the best of the rounds (one for what takes over 2 s). Then the bins go to
8 ranks: the work of the heaviest rank over the mean. Exit code 1 when ours passes the cap, needs more than one bin
above the lower bound, or takes 10 ms.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from journeyman.train.balancing import balance, cost_of
from journeyman.train.packing import pack

CAP, RANKS = 131_072, 8
SIZES = ((256, 0), (1024, 1), (4096, 2))
LIMIT_MS = 10.0

Packer = Callable[[list[int]], list[list[int]]]


@dataclass
class Row:
    """One packer on one set of lengths; ``over`` counts bins above the cap, ``worst`` is the fullest over the cap."""

    sequences: int
    lower_bound: int
    packer: str
    bins: int
    over: int
    worst: float
    cpu_ms: float

    @property
    def passed(self) -> bool:
        ours = self.packer != "journeyman"
        return ours or (self.over == 0 and self.bins <= self.lower_bound + 1 and self.cpu_ms < LIMIT_MS)


def lengths_of(count: int, seed: int) -> list[int]:
    """Tokens of each sequence."""
    draws = np.random.default_rng(seed).lognormal(np.log(20_000), 0.9, count)
    return [int(n) for n in np.clip(draws, 512, CAP)]


def load(path: Path, name: str, stand_ins: Sequence[str] = ()) -> Any:
    """One source file as a module, its unused imports answered by empty modules."""
    for stand_in in stand_ins:
        module = types.ModuleType(stand_in)
        module.DataProto = object  # type: ignore[attr-defined]
        module.get_device_name = object  # type: ignore[attr-defined]
        sys.modules.setdefault(stand_in, module)
        parent, _, child = stand_in.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def verl_packer(checkout: Path) -> Packer:
    """Its partition into as many micro-batches as the tokens need at least."""
    stand_ins = ["verl", "verl.protocol", "verl.utils", "verl.utils.tensordict_utils", "verl.utils.device"]
    source = load(checkout / "verl/utils/seqlen_balancing.py", "verl_seqlen_balancing", stand_ins)

    def packed(lengths: list[int]) -> list[list[int]]:
        import torch

        parts = -(-sum(lengths) // CAP)
        work = source.calculate_workload(torch.tensor(lengths)).tolist()
        bins: list[list[int]] = source.get_seqlen_balanced_partitions(work, parts, equal_size=False)
        return bins

    return packed


def skyrl_packer(checkout: Path, algorithm: str) -> Packer:
    """One of its packers."""
    source = load(checkout / "skyrl/train/dataset/bin_packing.py", "skyrl_bin_packing")
    return lambda lengths: list(source.make_seq_packer(algorithm, CAP).pack(lengths))


def timed(packer: Packer, lengths: list[int], rounds: int) -> tuple[list[list[int]], float]:
    """The bins and the CPU milliseconds of the best round."""
    times, bins = [], []
    for _ in range(rounds):
        start = time.process_time()
        bins = packer(lengths)
        times.append(1000 * (time.process_time() - start))
        if times[-1] > 2000:
            break
    assert sorted(i for b in bins for i in b) == list(range(len(lengths)))
    return bins, min(times)


def measure(name: str, packer: Packer, count: int, seed: int, rounds: int) -> tuple[Row, list[list[int]]]:
    """One packer on one set of lengths."""
    lengths = lengths_of(count, seed)
    bins, cpu_ms = timed(packer, lengths, rounds)
    loads = [sum(lengths[i] for i in b) for b in bins]
    over = sum(load > CAP and len(b) > 1 for load, b in zip(loads, bins, strict=True))
    return Row(count, -(-sum(lengths) // CAP), name, len(bins), over, max(loads) / CAP, cpu_ms), bins


def main() -> int:
    """Print the tables; 1 when ours missed a bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--verl", type=Path, help="checkout of verl")
    parser.add_argument("--skyrl", type=Path, help="checkout of SkyRL")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    packers: dict[str, Packer] = {"journeyman": lambda lengths: pack(lengths, CAP)}
    if args.skyrl:
        packers["SkyRL FFD"] = skyrl_packer(args.skyrl, "first_fit_decreasing")
        packers["SkyRL balanced"] = skyrl_packer(args.skyrl, "balanced")
    if args.verl:
        packers["verl KK"] = verl_packer(args.verl)
    rows: list[Row] = []
    print(f"{'sequences':>9} {'bound':>6} {'packer':<15} {'bins':>5} {'over cap':>9} {'fullest':>8} {'CPU ms':>10}")
    for count, seed in SIZES:
        lengths = lengths_of(count, seed)
        for name, packer in packers.items():
            row, bins = measure(name, packer, count, seed, args.rounds)
            rows.append(row)
            print(
                f"{count:>9,} {row.lower_bound:>6} {name:<15} {row.bins:>5} {row.over:>9} {row.worst:>7.2f}x "
                f"{row.cpu_ms:>10,.1f}",
                flush=True,
            )
            if name == "journeyman":
                _print_ranks(bins, lengths, args.rounds)
    if args.json:
        args.json.write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return 0 if all(row.passed for row in rows) else 1


def _print_ranks(bins: list[list[int]], lengths: list[int], rounds: int) -> None:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        plan = balance(bins, RANKS, lengths=lengths)
        times.append(1000 * (time.process_time() - start))
    work = [sum(cost_of(lengths, b) for b in rank) for rank in plan]
    print(
        f"{'':>16} {RANKS} ranks, {len(plan[0])} micro-batches each: "
        f"heaviest / mean {max(work) * RANKS / sum(work):.5f}, {min(times):.1f} CPU ms"
    )


if __name__ == "__main__":
    sys.exit(main())
