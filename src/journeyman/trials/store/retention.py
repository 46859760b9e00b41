"""What of a run may go. Records and index rows always stay: only tokens, events and evidence of killed writers go.

The rules, in order: a closed trial that is packed, and whose part was checked, may lose its hot tokens and events; one
that is not packed may not, unless forced; a trial that was never closed is kept as evidence, unless abandoned ones are
asked for and nobody has written it for a day; batches of the ladder belong to the ladder, and those it discarded may
lose their tokens when asked for. A directory that lost something says so in ``REMOVED``.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from journeyman.clock import now
from journeyman.digest import sha256_file
from journeyman.durable import write_json
from journeyman.errors import InputError
from journeyman.trials.store.cold import FOLDER, Part, read_manifests
from journeyman.trials.store.hot import DONE, EVENTS, EXPERTS, RECORD, REMOVED, TOKENS
from journeyman.trials.store.hot_reading import hot_directories
from journeyman.trials.store.listing import ASIDE, BATCH_TOKENS
from journeyman.trials.store.place import LocalPlace, place_at
from journeyman.trials.store.rows import key_of

DAY_S = 86_400.0
STAGING_AGE_S = 3600.0


@dataclass(frozen=True)
class Rules:
    """What may go.

    Attributes:
        force: tokens of closed trials that are not packed. They are lost for good.
        abandoned: trials that were never closed and not written for a day.
        discarded: tokens of batches that an interrupted step left aside.
        keep_days: closed trials younger than this stay whole.
    """

    force: bool = False
    abandoned: bool = False
    discarded: bool = False
    keep_days: float = 0.0


@dataclass(frozen=True)
class Removal:
    """Some files of one directory that go, or the whole directory when ``files`` is empty."""

    directory: str
    files: tuple[str, ...]
    bytes: int
    reason: str


@dataclass
class Plan:
    """What goes, and what stays for which reason: (directories, bytes) per reason."""

    removals: list[Removal] = field(default_factory=list)
    kept: dict[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        return sum(removal.bytes for removal in self.removals)

    def keep(self, reason: str, size: int) -> None:
        count, total = self.kept.get(reason, (0, 0))
        self.kept[reason] = (count + 1, total + size)


def plan_removal(run: Path, rules: Rules) -> Plan:
    """Look at a run; nothing is changed.

    Raises:
        InputError: there is no such directory.
    """
    if not run.is_dir():
        raise InputError(str(run), "is not a directory", allowed="a run directory")
    plan, place, packed = Plan(), LocalPlace(run), safely_packed(run)
    for directory in hot_directories(place):
        _judge(plan, run, directory, packed, rules)
    for staging in run.glob("trials/*/.*.staging"):
        if _age_s(staging) > STAGING_AGE_S:
            _take(plan, run, staging, (), "left by a killed transfer")
    for tokens in sorted(run.rglob(f"{ASIDE}*/{BATCH_TOKENS}")):
        if rules.discarded:
            _take(plan, run, tokens.parent, (BATCH_TOKENS,), "discarded batch; its records stay")
        else:
            plan.keep("discarded batch (--discarded removes its tokens)", tokens.stat().st_size)
    return plan


def carry_out(run: Path, plan: Plan) -> int:
    """Remove what the plan names; returns the bytes freed. Killed half way, the next plan names the rest."""
    freed = 0
    for removal in plan.removals:
        directory = run / removal.directory
        if not removal.files:
            shutil.rmtree(directory)
        else:
            if (directory / DONE).is_file():
                write_json(directory / REMOVED, {"at": now(), "files": removal.files, "reason": removal.reason})
            for name in removal.files:
                (directory / name).unlink(missing_ok=True)
        freed += removal.bytes
    return freed


def safely_packed(run: Path) -> frozenset[str]:
    """Keys of the trials whose part is where its manifest says, of the right size and, if local, the right sha256."""
    parts = read_manifests(LocalPlace(run), FOLDER)
    return frozenset(key for part in parts if _is_whole(run, part) for key in part.keys)


def _is_whole(run: Path, part: Part) -> bool:
    place = place_at(part.base) if part.base else LocalPlace(run / FOLDER)
    if not place.exists(part.file) or place.size(part.file) != part.bytes:
        return False
    return not isinstance(place, LocalPlace) or sha256_file(place.root / part.file) == part.sha256


def _judge(plan: Plan, run: Path, directory: str, packed: frozenset[str], rules: Rules) -> None:
    path = run / directory
    present = tuple(name for name in (TOKENS, EVENTS, EXPERTS) if (path / name).exists())
    size = sum((path / name).stat().st_size for name in present)
    if not (path / DONE).is_file():
        if rules.abandoned and _age_s(path) > DAY_S:
            _take(plan, run, path, (), "never closed, not written for a day")
        else:
            plan.keep("never closed: evidence (--abandoned removes it after a day)", size)
        return
    if not present:
        return
    record = json.loads((path / RECORD).read_bytes())
    key = key_of(str(record["trial_id"]), int(record.get("attempt", 1)))
    if _age_s(path) < rules.keep_days * DAY_S:
        plan.keep(f"younger than {rules.keep_days:g} days", size)
    elif key in packed:
        _take(plan, run, path, present, "packed")
    elif rules.force:
        _take(plan, run, path, present, "not packed, forced: tokens are lost")
    else:
        plan.keep("not packed (journeyman pack first)", size)


def _take(plan: Plan, run: Path, path: Path, names: tuple[str, ...], reason: str) -> None:
    found = [path / name for name in names] if names else list(_files(path))
    plan.removals.append(
        Removal(path.relative_to(run).as_posix(), names, sum(file.stat().st_size for file in found), reason)
    )


def _files(path: Path) -> Iterator[Path]:
    return (file for file in path.rglob("*") if file.is_file())


def _age_s(path: Path) -> float:
    """Seconds since anything in a directory was written."""
    return time.time() - max((entry.stat().st_mtime for entry in (path, *path.iterdir())), default=0.0)
