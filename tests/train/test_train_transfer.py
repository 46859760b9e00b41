"""Weights to an engine in another process, every way; damage is found, and nobody waits for ever."""

from __future__ import annotations

import multiprocessing
import threading
import time

import numpy as np
import pytest
import torch
from backend_cases import moved_model, write_model

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.train.transfer.collective import CollectiveSender, CollectiveTaker
from journeyman.train.transfer.files import FileSender, FileTaker
from journeyman.train.transfer.manifest import Manifest, TransferFailed
from journeyman.train.transfer.receiver import WAYS, FarEngine, load_into, open_sender, open_taker

pytestmark = pytest.mark.thorough

PROBE = list(range(3, 35))


def serve(directory, pipe):
    """An engine's process: it loads what it is told of and answers with the logprobs of the probe."""
    torch.set_num_threads(1)
    engine = EmbeddedEngine.from_directory(directory, max_len=64)
    taker = None
    pipe.send("ready")
    while (data := pipe.recv()) is not None:
        if data["way"] == "collective":
            taker = taker or CollectiveTaker(data["place"], deadline_s=60)
            pipe.send("waiting")
        version = load_into(engine, taker if data["way"] == "collective" else open_taker(data["way"]), data)
        pipe.send((version, engine.version, engine.forward_logprobs([PROBE])[0]))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    path = write_model(tmp_path_factory.mktemp("model"))
    return path, {name: tensor.detach() for name, tensor in moved_model(2).state_dict().items()}


@pytest.fixture(scope="module")
def far(models):
    """The pipe to an engine in another process."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(models[0], theirs), daemon=True)
    process.start()
    assert ours.recv() == "ready"
    yield ours
    ours.send(None)
    process.join(20)


@pytest.mark.parametrize(("version", "way"), list(enumerate(WAYS, start=1)))
def test_an_engine_in_another_process_serves_what_was_pushed(models, far, version, way):
    path, state = models
    moved = {name: tensor + 0.01 * version for name, tensor in state.items()}
    sender = CollectiveSender(deadline_s=60) if way == "collective" else open_sender(way)
    answers = []

    def tell(manifest):
        far.send(manifest)
        answers.append(far.recv())

    FarEngine(sender, tell).update_weights(moved, version)
    taken, serving, logprobs = far.recv() if way == "collective" else answers[0]
    sender.close()
    assert taken == serving == version
    here = EmbeddedEngine.from_directory(path, max_len=64)
    before = here.forward_logprobs([PROBE])[0]
    here.update_weights(moved, version)
    assert np.array_equal(logprobs, here.forward_logprobs([PROBE])[0])
    assert np.abs(logprobs - before).max() > 0.1


@pytest.mark.parametrize("way", ["disk", "memory"])
def test_one_changed_byte_stops_a_push_before_a_weight_is_touched(models, way, tmp_path):
    path, state = models
    sender = FileSender(way, tmp_path if way == "disk" else None)
    manifest = sender.send(state, 3)
    with open(manifest.place, "r+b") as file:
        file.seek(-5, 2)
        byte = file.read(1)
        file.seek(-5, 2)
        file.write(bytes([byte[0] ^ 4]))
    engine = EmbeddedEngine.from_directory(path, max_len=64)
    before = engine.forward_logprobs([PROBE])[0]
    with pytest.raises(TransferFailed, match="arrived as"):
        load_into(engine, FileTaker(), manifest.as_json())
    assert engine.version == 0
    assert np.array_equal(engine.forward_logprobs([PROBE])[0], before)
    sender.close()


def test_a_cut_file_and_a_lost_file_are_failed_transfers(models, tmp_path):
    _, state = models
    sender = FileSender("disk", tmp_path)
    manifest = sender.send(state, 3)
    with open(manifest.place, "r+b") as file:
        file.truncate(1000)
    with pytest.raises(TransferFailed), FileTaker().take(manifest):
        pass
    sender.close()
    with pytest.raises(TransferFailed), FileTaker().take(manifest):
        pass
    with pytest.raises(TransferFailed, match="manifest"):
        Manifest.of_json({"version": 1})


def test_old_pushes_are_removed_and_nothing_stays_after_close(models, tmp_path):
    _, state = models
    sender = FileSender("disk", tmp_path)
    for version in range(5):
        sender.send(state, version)
    assert sorted(p.name for p in tmp_path.rglob("*.safetensors")) == ["v3.safetensors", "v4.safetensors"]
    sender.close()
    assert not list(tmp_path.iterdir())


def test_tied_and_transposed_tensors_arrive_as_they_were(tmp_path):
    shared = torch.arange(12.0).reshape(3, 4)
    state = {"a": shared, "b": shared, "c": shared.t(), "d": torch.ones(2, dtype=torch.bfloat16), "e": torch.zeros(0)}
    sender = FileSender("disk", tmp_path)
    with FileTaker().take(sender.send(state, 1)) as got:
        assert all(torch.equal(got[name], tensor) for name, tensor in state.items())
    sender.close()


def test_a_collective_with_nobody_on_the_other_side_ends_by_its_deadline(models):
    _, state = models
    sender, began = CollectiveSender(deadline_s=1.5), time.monotonic()
    with pytest.raises(TransferFailed, match="meet"):
        sender.send(state, 1)
    assert time.monotonic() - began < 20


def test_a_collective_whose_trainer_never_sends_ends_by_its_deadline(models):
    _, state = models
    sender = CollectiveSender(deadline_s=3)
    taker = CollectiveTaker(sender.address, deadline_s=3)
    thread = threading.Thread(target=sender._group.meet, daemon=True)
    thread.start()
    began = time.monotonic()
    with pytest.raises(TransferFailed), taker.take(sender.manifest(state, 1)):
        pass
    thread.join(20)
    assert time.monotonic() - began < 20
