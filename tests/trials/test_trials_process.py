"""The process executor: the same trials as inline, each in a process of its own, into the store."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from trial_places import place_of, requests_of, scripts_of

from journeyman.engines.scripted import ScriptedEngine
from journeyman.ladder.workshop import Workshop
from journeyman.trials.executors.process import ProcessExecutor
from journeyman.trials.inline import InlineExecutor
from journeyman.trials.store import Owner, open_run


def test_a_trial_in_its_own_process_is_the_trial_that_runs_inline(prepared: Workshop, tmp_path: Path) -> None:
    requests = requests_of(prepared.tasks("train")[:6])
    scripts = scripts_of(prepared, requests)
    inline = InlineExecutor(
        ScriptedEngine(scripts), prepared.tokenizer, prepared.tools_of_task, max_context=640, seed=1
    )
    with prepared.verifier() as verifier, Owner(tmp_path / "run") as owner:
        expected = inline.run(requests, verifier)
        with ProcessExecutor(
            ScriptedEngine(scripts), place_of(prepared), seed=1, concurrency=4, owner=owner
        ) as executor:
            found = executor.run(requests, verifier)
    assert [trial.summary() for trial in found] == [trial.summary() for trial in expected]
    for ours, theirs in zip(found, expected, strict=True):
        assert np.array_equal(ours.tokens.ids, theirs.tokens.ids)
        assert np.array_equal(ours.tokens.turn, theirs.tokens.turn)
    with open_run(tmp_path / "run") as run:
        rows = run.trials(include_open=True)
        assert [(row.is_done, row.reward, row.n_calls) for row in rows] == [
            (True, 1.0, len(t.turns)) for t in sorted(found, key=lambda t: t.request.trial_id)
        ]
        stored = run.trajectory(found[0].request.trial_id)
        assert np.array_equal(stored.ids, found[0].tokens.ids)
