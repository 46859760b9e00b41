"""The store at a URL: an S3-compatible server that the tests start, real sockets, s3fs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from store_trials import columns_of, store_hot

from journeyman.errors import EnvironmentMissing, InputError
from journeyman.trials.store import Owner, open_run
from journeyman.trials.store.columns import equal
from journeyman.trials.store.export import export_run
from journeyman.trials.store.pack import pack_run
from journeyman.trials.store.place import RemotePlace, download_directory, upload_directory
from journeyman.trials.store.retention import Rules, carry_out, plan_removal
from journeyman.trials.store.transfer import upload


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """URL of an empty bucket on a server of our own."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}"
    given = {"AWS_ACCESS_KEY_ID": "x", "AWS_SECRET_ACCESS_KEY": "x", "AWS_ENDPOINT_URL": address}
    before = {name: os.environ.get(name) for name in (*given, "AWS_DEFAULT_REGION")}
    os.environ.update(given, AWS_DEFAULT_REGION="us-east-1")
    try:
        _wait_for(address)
        request = urllib.request.Request(f"{address}/store", method="PUT")
        urllib.request.urlopen(request, timeout=30).close()
        yield "s3://store"
    finally:
        server.kill()
        server.wait(timeout=30)
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"{address}/moto-api/data.json", timeout=5).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def test_a_run_is_packed_to_s3_read_there_and_its_hot_files_may_go(bucket: str, tmp_path: Path) -> None:
    run, url = tmp_path / "run", f"{bucket}/packed"
    ids = [f"rl/0/task-{n % 3}/{n}" for n in range(9)]
    with Owner(run) as owner:
        for trial_id in ids:
            owner.admit(store_hot(run, trial_id))
    rows = {row.key: row.reward for row in open_run(run).trials()}
    packed = pack_run(run, to=url)
    assert (packed.where, packed.n_trials) == (url, 9)
    plan = plan_removal(run, Rules())
    assert len(plan.removals) == 9
    carry_out(run, plan)
    for place in (run, url):
        with open_run(place) as reading:
            assert {row.key: row.reward for row in reading.trials()} == rows
            for trial_id in ids:
                assert equal(reading.trajectory(trial_id), columns_of(trial_id))
            assert len(reading.events(ids[0])) == 5


def test_a_trial_reaches_the_owner_through_s3_before_it_is_acknowledged(bucket: str, tmp_path: Path) -> None:
    url = f"{bucket}/inbox"
    for n in range(3):
        upload(store_hot(tmp_path / "node", f"rl/0/t/{n}"), url)
    with Owner(tmp_path / "run") as owner:
        assert sorted(owner.collect(url)) == ["rl/0/t/0#1", "rl/0/t/1#1", "rl/0/t/2#1"]
        assert owner.collect(url) == []
        upload(store_hot(tmp_path / "node", "rl/0/t/3"), url)
        assert owner.collect(url) == ["rl/0/t/3#1"]
    assert equal(open_run(tmp_path / "run").trajectory("rl/0/t/3"), columns_of("rl/0/t/3"))


def test_a_whole_run_with_hot_trials_is_read_at_its_url(bucket: str, tmp_path: Path) -> None:
    run, url = tmp_path / "run", f"{bucket}/whole"
    with Owner(run) as owner:
        owner.admit(store_hot(run, "a"))
        upload_directory(run, url)
    with open_run(url) as reading:
        assert [row.key for row in reading.trials()] == ["a#1"]
        assert equal(reading.trajectory("a"), columns_of("a"))
        assert reading.record("a")["harness"] == "toolbelt"
    assert export_run(url, "prime-rl", f"{bucket}/samples").n_documents == 1
    assert RemotePlace(f"{bucket}/samples").exists("samples-00000.jsonl")


def test_weights_come_back_from_s3_as_they_were_and_a_torn_upload_is_refused(bucket: str, tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    weights, url = tmp_path / "weights", f"{bucket}/weights"
    weights.mkdir()
    values = np.random.default_rng(0).standard_normal((64, 32)).astype(np.float32)
    save_file({"layer": values}, weights / "model.safetensors")
    (weights / "config.json").write_text("{}")
    sent = upload_directory(weights, url)
    assert download_directory(url, tmp_path / "back") == sent
    assert load_file(tmp_path / "back" / "model.safetensors")["layer"].tobytes() == values.tobytes()
    RemotePlace(url).write("config.json", b"{ }")
    with pytest.raises(InputError, match="differs from the digest it was uploaded with"):
        download_directory(url, tmp_path / "again")
    with pytest.raises(InputError, match=r"holds no complete upload \(UPLOADED\.json is missing\)"):
        download_directory(f"{bucket}/nowhere", tmp_path / "nowhere")


def test_another_protocol_of_fsspec_works_the_same(tmp_path: Path) -> None:
    run = tmp_path / "run"
    with Owner(run) as owner:
        owner.admit(store_hot(run, "a"))
    pack_run(run, to="memory://packed/here")
    with open_run("memory://packed/here") as reading:
        assert equal(reading.trajectory("a"), columns_of("a"))


def test_a_protocol_that_nobody_knows_or_has_is_named() -> None:
    with pytest.raises(InputError, match="a local directory or a URL fsspec knows"):
        open_run("s4://bucket/run")
    with pytest.raises((EnvironmentMissing, InputError), match="gdrive"):
        open_run("gdrive://bucket/run")
