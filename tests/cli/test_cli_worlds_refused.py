"""A template that is no good is refused by ``worlds build`` with the gate's name and the evidence, and exit code 1."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.worlds import binding
from journeyman.worlds.templates import TEMPLATES, reading
from journeyman.worlds.templates.banking.ib3_sensitivity import IB3
from journeyman.worlds.templates.search.s3_absent import FILE, S3
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.planting import OPERATORS
from journeyman.worlds.verify import Check

pytestmark = pytest.mark.thorough

WAIVED = [word for limit in ("memory", "pids", "disk", "cpus") for word in ("--waive", limit)]


@pytest.fixture
def refused(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Builds one task of one template; what is said when nothing comes of it."""
    try:
        PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))

    def build(template: object, world: int) -> str:
        monkeypatch.setitem(TEMPLATES, "BAD1", template)  # type: ignore[arg-type]
        monkeypatch.setattr(binding, "ATTEMPTS", 1)  # one look is enough
        words = ["--seed", str(world), "--worlds", "1", "--tasks", "1", "--split", "train", "--templates", "BAD1"]
        done = run("worlds", "build", *words, "--out", str(tmp_path / "out"), *WAIVED)
        assert done.code == 1
        assert not list((tmp_path / "out").glob("tasks/*/*"))
        return done.err

    return build


class Unsolved(S3):
    """Its oracle leaves something else than what is asked for."""

    def solve(self, ask):
        yield from reading.deliver_text(FILE, b'{"items": [], "citations": []}')


class Idle(IB3):
    """A file that is there is worth half, whatever it says."""

    def bind(self, office, rng, knobs):
        bound = super().bind(office, rng, knobs)
        there = Check("there", "present", {"files": list(bound.deliverables)}, weight=0.5, no_op="pass")
        return replace(bound, checks=(there, *(check for check in bound.checks if check.kind == "scored")))


def named(kind: type) -> object:
    return kind(id="BAD1")


def test_an_oracle_that_fails_is_refused(refused):
    said = refused(named(Unsolved), 7)
    assert "BAD1: G2: the oracle from files scores 0.0" in said


def test_a_no_op_that_scores_is_refused(refused):
    assert "BAD1: G3: untouched scores 0." in refused(named(Idle), 7)


def test_a_trap_that_nobody_can_discover_is_refused(refused, monkeypatch: pytest.MonkeyPatch):
    plain = OPERATORS["T11"]

    def unsaid(draft, rng):
        return [replace(one, fact_ids=(f"{one.fact_ids[0]}:unsaid",)) for one in plain.apply(draft, rng)]

    monkeypatch.setitem(OPERATORS, "T11", Operator("T11", plain.title, plain.point, unsaid))
    said = refused(named(S3), 7)
    assert "BAD1: G2: trap T11 at absent:" in said
    assert "cannot be discovered: no place disarms it" in said
