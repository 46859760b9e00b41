"""Every loop for real models, with one of random weights: each trial ends in a row, and every token is kept."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import date
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from small_model import make_model

from journeyman.cli.main import main
from journeyman.engines.protocol import TurnRequest, TurnResult
from journeyman.engines.spec import open_engine
from journeyman.harness import SPECS, Budget
from journeyman.ladder.workshop import Workshop
from journeyman.sandbox.protocol import AgentEnvironment
from journeyman.tokens.context import Source
from journeyman.tokens.segments import prompt_ranges
from journeyman.tools.workbench import tools_environment
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.executors.workplaces import task_place
from journeyman.trials.outcome import OUTCOMES
from journeyman.trials.record import TrialRequest
from journeyman.trials.store import Owner, open_run

pytestmark = pytest.mark.slow
WINDOW = 12_000
BUDGET = Budget(context_tokens=WINDOW, max_new_tokens=40, max_turns=4)
LOOPS = ("react", "toolbelt", "code", "terminal")


class Witness:
    """An engine that writes down what it was given and what it sampled, turn by turn."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine
        self.seen: dict[str, list[int]] = {}
        self.turns: dict[str, list[tuple[list[int], TurnResult]]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, request: TurnRequest) -> None:
        self.seen.setdefault(request.trial, []).extend(request.append)
        self._engine.submit(request)

    def step(self, deadline_s: float = 60.0) -> Iterator[TurnResult]:
        for result in self._engine.step(deadline_s):
            self.turns.setdefault(result.trial, []).append((list(self.seen[result.trial]), result))
            self.seen[result.trial] += result.ids
            yield result

    def release(self, trial: str) -> None:
        self.seen.pop(trial, None)
        self._engine.release(trial)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("model")
    make_model(directory, window=WINDOW)
    return directory


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    return tools_environment(tmp_path_factory.mktemp("tools"))


def test_each_loop_ends_in_a_row_of_the_table_and_stores_exactly_what_was_sampled(
    prepared: Workshop, model: Path, environment: AgentEnvironment, tmp_path: Path
) -> None:
    task = prepared.tasks("train")[0]
    options = MappingProxyType({"servers": ("filesystem",)})
    specs = {name: replace(SPECS[name], budget=BUDGET, today=date(2026, 3, 4)) for name in LOOPS}
    specs["react"] = replace(specs["react"], options=options)
    specs["toolbelt"] = replace(specs["toolbelt"], options=options)
    requests = [TrialRequest(task, spec, ("loop", name, 0), 0) for name, spec in specs.items()]
    place = task_place(
        label=prepared.label,
        provider=prepared.provider.name,
        environment=str(environment.path),
        digest=environment.digest,
        tokenizer=str(model),
        waive=sorted(prepared.tier.waive),
    )
    with closing(open_engine(str(model), max_len=WINDOW, rows=4)) as engine, Owner(tmp_path / "run") as owner:
        witness = Witness(engine)
        with prepared.verifier() as verifier, ProcessExecutor(witness, place, seed=3, owner=owner) as executor:
            trials = executor.run(requests, verifier)
    assert [trial.request.trial_id for trial in trials] == [f"loop/{name}/0" for name in LOOPS]
    with open_run(tmp_path / "run") as run:
        for trial in trials:
            key = trial.request.trial_id
            assert trial.outcome is not None and trial.error is None, (key, trial.error)
            assert trial.outcome.cause in OUTCOMES and trial.outcome.reward_valid, (key, trial.outcome)
            assert run.row(key).outcome in ("failed", "malformed_deliverable"), key
            columns, segments = run.trajectory(key), run.segments(key)
            turns = witness.turns[key]
            assert len(turns) == len(trial.turns) >= 1
            for number, (prompt, result) in enumerate(turns, start=1):
                places = np.flatnonzero((columns.turn == number) & (columns.source == Source.SAMPLED))
                assert columns.ids[places].tolist() == result.ids
                assert columns.logprob[places].tobytes() == np.asarray(result.logprobs, np.float32).tobytes()
                ranges = prompt_ranges(segments, int(places[0]))
                assert [t for a, b in ranges for t in columns.ids[a:b].tolist()] == prompt


def test_trials_run_takes_the_model_its_servers_and_its_faults_from_the_command_line(
    prepared: Workshop, model: Path, tmp_path: Path
) -> None:
    server = Path(__file__).with_name("mcp_word_server.py")
    config = {"mcpServers": {"words": {"command": "python3", "args": [str(server)]}}}
    (tmp_path / "mcp.json").write_text(json.dumps(config))
    (tmp_path / "faults.json").write_text(json.dumps({"error_rules": [{"error_type": "server_error", "tool": "word"}]}))
    waive = [word for limit in sorted(prepared.tier.waive) for word in ("--waive", limit)]
    words = ["trials", "run", str(prepared.tasks("dev")[0].path), "--policy", str(model), "--harness", "code", *waive]
    words += ["--context-tokens", "6000"]
    words += ["--mcp", str(tmp_path / "mcp.json"), "--faults", str(tmp_path / "faults.json"), "--quiet"]
    assert main([*words, "--executor", "inline", "--out", str(tmp_path / "run")]) == 0
    with open_run(tmp_path / "run") as run:
        (row,) = run.trials()
        record = run.record(row.key)
    assert row.cause in ("none", "agent_exhausted_budget")
    assert len(record["turns"]) >= 1
    assert (record["faults"], record["server_reconnects"]) == ([], {"words": 0})
