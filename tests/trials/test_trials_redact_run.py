"""A small run into which a key is planted wherever text enters; then every byte of its directory is looked at."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from journeyman.cli.breakdown import Breakdown, traceback_kept_in
from journeyman.cli.main import main
from journeyman.cli.verb import print_json, progress, show_progress
from journeyman.errors import EnvironmentMissing
from journeyman.harness import HARNESSES, Turn
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.errors import SandboxLost
from journeyman.tasks.task import TaskDraft, load_task, write_task
from journeyman.tasks.verify import BatchVerifier
from journeyman.tokens.context import Context
from journeyman.tokens.listing import token_lines
from journeyman.trials.executors.closing import Closer, Closing
from journeyman.trials.record import Trial, TrialRequest
from journeyman.trials.regrade import regrade_run
from journeyman.trials.store import HotTrial, open_run, write_batch
from journeyman.trials.store.export import export_run
from journeyman.trials.store.pack import pack_run

KEY = "planted-key-4f1d8a"
SHAPED = "sk-proj-PlantedByShape0123456789"
CHECK = f"def grade(artifacts, truth):\n    raise KeyError('{KEY} {SHAPED}')\n"


@pytest.fixture
def planted_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Two trials: a verifier that breaks with the key in its words, and an error that holds it."""
    monkeypatch.setenv("PLANTED_API_KEY", KEY)
    try:
        provider = PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))
    run = tmp_path / "run"
    own = {"family": "look", "world_id": "w", "split": "train", "world_digest": "0" * 64, "deliverables": ["a.json"]}
    files = {
        "environment/Dockerfile": b"FROM debian:12\n",
        "solution/solve.sh": b"true\n",
        "tests/test.sh": b"exit 9\n",
        "tests/truth.json": b"{}",
        "tests/check.py": CHECK.encode(),
    }
    task = load_task(
        write_task(TaskDraft("do it\n", {"metadata": {"journeyman": own}}, files), run / "tasks" / "look-1")
    )
    environment = build_environment(tmp_path / "agent")
    label = f"test-redact-{os.getpid()}"
    waive = frozenset({"memory", "pids"}) - provider.supports
    with BatchVerifier(provider, environment, label, waive=waive) as verifier:
        closer = Closer(verifier, run, None)
        for sample, fault in enumerate((None, SandboxLost("s-1", "exec", f"it said {KEY} and {SHAPED}"))):
            trial = trial_of(TrialRequest(task, HARNESSES["toolbelt"], ("r", sample), sample), fault)
            hot = HotTrial(run, trial.request.trial_id)
            hot.append_context(context())
            hot.event("tool", text=f"export PLANTED_API_KEY={KEY}", nested={"headers": [f"Bearer {KEY}", SHAPED]})
            closer.add(Closing(trial, fault, hot, {"note": f"facts with {KEY}"}))
        closed: list[Trial] = []
        while len(closed) < 2:
            closed += closer.take()
        closer.close()
        write_batch(run / "batch", closed)
        regrade_run(run, verifier)
    with pytest.raises(Breakdown), traceback_kept_in(run):
        raise RuntimeError(f"with {KEY} in it")
    pack_run(run)
    yield run


def context() -> Context:
    found = Context()
    found.append_prompt([1, 2, 3])
    found.append_sampled([4, 5], np.zeros(2, np.float32), version=0)
    return found


def trial_of(request: TrialRequest, fault: Exception | None) -> Trial:
    turn = Turn(2, "stop", (), (SHAPED,), f"the tool printed {KEY}")
    error = (type(fault).__name__, str(fault)) if fault is not None else None
    stop = "error" if fault is not None else "answered"
    return Trial(request, [turn], context().arrays(), stop, {"a.json": b"{}"}, error=error)


def texts_of(run: Path) -> dict[str, str]:
    """Every file as text, packed ones unfolded; the task itself, which is an input, aside."""
    found = {}
    for path in sorted(run.rglob("*")):
        if not path.is_file() or path.is_relative_to(run / "tasks"):
            continue
        data = path.read_bytes()
        if path.suffix == ".parquet":
            import pyarrow.parquet as parquet

            data = json.dumps(parquet.read_table(io.BytesIO(data)).to_pylist(), default=str).encode()
        found[path.relative_to(run).as_posix()] = data.decode(errors="replace")
    return found


def test_no_file_of_a_run_holds_a_planted_key(planted_run: Path) -> None:
    texts = texts_of(planted_run)
    holding = {name for name, text in texts.items() if KEY in text or SHAPED in text}
    assert holding == set()
    kinds = {name.rpartition("/")[2] for name in texts}
    assert {"events.jsonl", "trial.json", "trials.jsonl", "verdicts.jsonl", "traceback.txt"} <= kinds
    assert any(name.endswith(".parquet") for name in texts)
    for name in ("events.jsonl", "trial.json", "trials.jsonl", "verdicts.jsonl", "traceback.txt"):
        assert any(path.endswith(name) and "[secret PLANTED_API_KEY]" in text for path, text in texts.items()), name


def test_the_search_does_find_a_key_that_was_written(planted_run: Path) -> None:
    (planted_run / "notes.txt").write_text(f"x {KEY}")
    assert [name for name, text in texts_of(planted_run).items() if KEY in text] == ["notes.txt"]


def test_records_are_readable_as_before(planted_run: Path) -> None:
    with open_run(planted_run) as run:
        record: dict[str, Any] = run.record("r/0#1")
        assert record["turns"][0]["observation"] == "the tool printed [secret PLANTED_API_KEY]"
        assert record["deliverables"] == {"a.json": "{}"}
        assert [event["type"] for event in run.events("r/0#1")] == ["tool", "ended", "graded"]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, ["regrade", f"runs/{KEY}"]),  # an error of ours
        (2, ["--debug", "regrade", f"runs/{KEY}"]),  # with its traceback
        (2, ["trials", "run", "--samples", KEY]),  # an error of the parser of words
        (2, ["trials", "run", f"tasks/{KEY}", "--policy", KEY, "--out", "out"]),
    ],
)
def test_an_error_on_the_terminal_holds_no_key(
    code: int, words: list[str], planted_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == code
    said = capsys.readouterr()
    assert KEY not in said.err + said.out
    assert "[secret PLANTED_API_KEY]" in said.err


def test_progress_and_documents_on_the_terminal_hold_no_key(
    planted_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    show_progress(quiet=False)
    progress(f"looking at {KEY}")
    print_json({"found": [KEY, SHAPED]})
    said = capsys.readouterr()
    assert json.loads(said.out) == {"found": ["[secret PLANTED_API_KEY]", "[secret sk-...]"]}
    assert said.err == "looking at [secret PLANTED_API_KEY]\n"


def test_messages_of_an_export_and_tokens_that_are_shown_hold_no_key_and_their_ids_are_whole(planted_run: Path) -> None:
    export_run(planted_run, "atif", planted_run / "exports", decode=lambda ids: f"{len(ids)} ids spell {KEY}")
    document = json.loads((planted_run / "exports" / "r-0-1.json").read_text())
    assert document["steps"][0]["message"] == "3 ids spell [secret PLANTED_API_KEY]"
    assert document["steps"][1]["metrics"]["completion_token_ids"] == [4, 5]


def test_a_secret_that_several_tokens_spell_is_not_shown(monkeypatch: pytest.MonkeyPatch, prepared: Workshop) -> None:
    ids = prepared.tokenizer.encode(f"key {KEY} end")
    shown = Context()
    shown.append_prompt(ids)
    plain = "".join(line.text for line in token_lines(shown.arrays(), prepared.tokenizer))
    assert KEY in plain
    monkeypatch.setenv("PLANTED_API_KEY", KEY)
    lines = list(token_lines(shown.arrays(), prepared.tokenizer))
    assert "".join(line.text for line in lines) == plain.replace(KEY, "[secret PLANTED_API_KEY]")
    assert [line.id for line in lines] == ids
