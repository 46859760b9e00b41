"""Space: a disk that runs low pauses the writer, and gc frees what is safe to free."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from store_trials import columns_of, store_hot

from journeyman.cli.main import main
from journeyman.errors import StorageError
from journeyman.trials.store import HotTrial, Owner, open_run
from journeyman.trials.store.columns import calls_of, equal
from journeyman.trials.store.hot import DONE, EVENTS, RECORD, REMOVED, TOKENS
from journeyman.trials.store.index import FILE, read_index
from journeyman.trials.store.pack import pack_run
from journeyman.trials.store.retention import DAY_S, Rules, carry_out, plan_removal
from journeyman.trials.store.space import SpaceGuard

FILLED = """
import logging, sys, threading, time
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, sys.argv[2])
from store_trials import columns_of, record_of
from journeyman.trials.store import HotTrial, Owner, open_run
from journeyman.trials.store.batch import write_batch
from journeyman.trials.store.columns import calls_of, equal
from journeyman.trials.store.index import read_index
from journeyman.trials.store.space import SpaceGuard

logging.basicConfig(format="%(message)s")
place = Path(sys.argv[1])
reserve = int(sys.argv[3])

def fill():
    with open(place / "filler", "wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                pass

guard = SpaceGuard(reserve_bytes=reserve, wait_s=60, poll_s=0.05)
calls = calls_of(columns_of("t", 40))
with HotTrial(place, "t", space=guard) as hot:
    for call in calls[:3]:
        hot.append_call(call)
    fill()
    threading.Timer(1.0, (place / "filler").unlink).start()
    start = time.monotonic()
    for call in calls[3:]:
        hot.append_call(call)
    print("paused", time.monotonic() - start > 0.8)
    hot.close(record_of("t"))
print("equal", equal(open_run(place).trajectory("t"), columns_of("t", 40)))
guard = SpaceGuard(reserve_bytes=reserve, wait_s=0.2, poll_s=0.05)
with HotTrial(place, "u", space=guard) as hot:
    hot.append_call(calls[0])
    fill()
    try:
        for call in calls[1:]:
            hot.append_call(call)
            n = hot.n_tokens
    except Exception as error:
        print(type(error).__name__, error)
(place / "filler").unlink()
run = open_run(place)
print("whole", len(run.trajectory("u").ids) == hot.n_tokens)

guard = SpaceGuard(reserve_bytes=reserve, wait_s=60, poll_s=0.05)
with Owner(place, space=guard) as owner, HotTrial(place, "v", space=guard) as hot:
    hot.append_call(calls[0])
    directory = hot.close(record_of("v"))
    trial = SimpleNamespace(summary=lambda: record_of("b"), tokens=columns_of("b"))
    for name, write in (
        ("index", lambda: owner.admit(directory)),
        ("batch", lambda: write_batch(place / "step", [trial], space=guard)),
    ):
        fill()
        threading.Timer(1.0, (place / "filler").unlink).start()
        start = time.monotonic()
        write()
        print(name, "paused", time.monotonic() - start > 0.8)
print("there", (place / "step" / "tokens.npz").is_file(), [row.trial_id for row in read_index(place / "index.sqlite")])
"""


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small tmpfs needs root")
@pytest.mark.parametrize("reserve_bytes", [0, 1 << 60])  # the second is cut to a twentieth of the disk
@pytest.mark.thorough
def test_a_full_disk_pauses_the_writer_which_goes_on_and_loses_nothing(tmp_path: Path, reserve_bytes: int) -> None:
    script = 'mount -t tmpfs -o size=8m tmpfs "$1"; exec "$2" -c "$3" "$1" "$4" "$5"'
    words = [str(tmp_path), sys.executable, FILLED, str(Path(__file__).parent), str(reserve_bytes)]
    command = ["unshare", "-m", "sh", "-euc", script, "sh", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(f"no mount namespace here: {done.stderr.strip()}")
    said = done.stdout.splitlines()
    assert said[:2] == ["paused True", "equal True"], done.stderr
    assert said[2].startswith("StorageError")
    assert "No space left on device; free some space" in said[2]
    assert said[3] == "whole True"
    assert said[4:] == ["index paused True", "batch paused True", "there True ['t', 'v']"]
    assert "paused, nothing is lost; free some space (journeyman gc)" in done.stderr
    assert "there is room again" in done.stderr


def test_a_writer_that_may_not_wait_gives_up_at_once(tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    start = time.monotonic()
    with pytest.raises(StorageError, match="No space left on device"):
        SpaceGuard(wait_s=0).write(tmp_path, full)
    assert time.monotonic() - start < 1


def test_another_failure_of_the_disk_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "trials").write_text("a file where the directory should be")
    with pytest.raises(StorageError, match="cannot be written: Not a directory"):
        HotTrial(tmp_path, "t")
    with pytest.raises(StorageError, match="cannot be written: File exists"):
        HotTrial(tmp_path / "trials", "t")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Three trials: packed, closed but not packed, never closed."""
    root = tmp_path / "run"
    with Owner(root) as owner:
        owner.admit(store_hot(root, "packed"))
    pack_run(root)
    with Owner(root) as owner:
        owner.admit(store_hot(root, "unpacked"))
    with HotTrial(root, "open", durable=False) as hot:
        hot.append_call(calls_of(columns_of("open"))[0])
    return root


def files_of(run: Path, trial_id: str) -> set[str]:
    (directory,) = run.glob(f"trials/*/{trial_id}-*")
    return {path.name for path in directory.iterdir()}


def test_gc_takes_only_what_is_packed_and_keeps_records_and_rows(run: Path) -> None:
    rows = list(read_index(run / FILE) or ())
    plan = plan_removal(run, Rules())
    assert [removal.reason for removal in plan.removals] == ["packed"]
    assert set(plan.kept) == {
        "not packed (journeyman pack first)",
        "never closed: evidence (--abandoned removes it after a day)",
    }
    assert carry_out(run, plan) == plan.bytes > 0
    assert files_of(run, "packed") == {DONE, RECORD, REMOVED}
    assert files_of(run, "unpacked") == {DONE, RECORD, TOKENS, EVENTS}
    assert plan_removal(run, Rules()).removals == []
    with Owner(run) as owner:
        owner.rebuild()
    assert list(read_index(run / FILE) or ()) == rows
    assert equal(open_run(run).trajectory("packed"), columns_of("packed"))


def test_gc_does_not_believe_a_part_that_was_damaged(run: Path) -> None:
    (part,) = (run / "cold").glob("*.parquet")
    data = bytearray(part.read_bytes())
    data[1000] ^= 1
    part.write_bytes(bytes(data))
    assert plan_removal(run, Rules()).removals == []


def test_force_and_abandoned_are_asked_for_one_by_one(run: Path) -> None:
    forced = plan_removal(run, Rules(force=True))
    assert sorted(removal.reason for removal in forced.removals) == ["not packed, forced: tokens are lost", "packed"]
    assert len(plan_removal(run, Rules(abandoned=True)).removals) == 1  # the open one was written a moment ago
    (directory,) = run.glob("trials/*/open-*")
    past = time.time() - 2 * DAY_S
    for path in (*directory.iterdir(), directory):
        os.utime(path, (past, past))
    reasons = [removal.reason for removal in plan_removal(run, Rules(abandoned=True)).removals]
    assert sorted(reasons) == ["never closed, not written for a day", "packed"]
    assert plan_removal(run, Rules(keep_days=1)).removals == []
    carry_out(run, forced)
    reading = open_run(run)
    assert reading.row("unpacked").reward == 1.0
    assert reading.record("unpacked")["family"] == "sum2"
    with pytest.raises(Exception, match="its tokens were removed by gc"):
        reading.trajectory("unpacked")
    assert pack_run(run).unpackable == ("unpacked#1",)


def test_the_verbs_say_what_they_do(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = files_of(run, "packed")
    assert main(["gc", str(run), "--dry-run"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("would go        1")
    assert said[-1].endswith(f"bytes would be freed: {run}")
    assert files_of(run, "packed") == before
    assert main(["pack", str(run), "--json", "--quiet"]) == 0
    packed = json.loads(capsys.readouterr().out)
    assert (packed["n_trials"], packed["n_packed_before"]) == (1, 1)
    assert main(["gc", str(run), "--json"]) == 0
    gone = json.loads(capsys.readouterr().out)
    assert gone["removed"] == [{"reason": "packed", "directories": 2, "bytes": gone["bytes"]}]
    assert main(["pack", str(run), "--as", "atif", "--out", str(run / "out")]) == 0
    assert capsys.readouterr().out.endswith(f"MB: {run / 'out'}\n")
    assert main(["pack", str(run / "absent")]) == 2
    assert main(["pack", "s3://bucket/run"]) == 2
    assert "pack the run where it lies, with --to URL" in capsys.readouterr().err
    assert main(["pack", "s3://bucket/run", "--as", "atif"]) == 2
    assert "--out: is missing" in capsys.readouterr().err
    assert main(["gc", str(run / "absent")]) == 2
