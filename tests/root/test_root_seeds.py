"""One seed, many streams: a stream depends on its own name only."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from journeyman.clock import Stopwatch, now
from journeyman.seeds import key64, stream

PARTS = st.lists(st.one_of(st.integers(), st.text(alphabet="ab:1\\\x1fu", max_size=4)), max_size=4)


def test_a_stream_is_the_same_in_every_process_and_version():
    # Recorded once: a change here changes every world and every run made so far.
    assert key64(0, "rollout", 3, 1) == 2807396222741960297
    assert [stream(0, "world").randrange(1000) for _ in range(2)] == [60, 60]


@given(PARTS, PARTS)
def test_two_names_are_two_streams_and_a_number_is_not_its_text(first, second):
    assert (key64(7, *first) == key64(7, *second)) == (_named(first) == _named(second))


def test_a_separator_inside_a_word_does_not_make_it_two_words():
    assert key64(7, "a\x1fstr:b") != key64(7, "a", "b")
    assert key64(7, "a\x1fb") != key64(7, "a\\ub")


@given(st.integers(), st.integers())
def test_two_seeds_are_two_streams(one, other):
    assert (key64(one, "x") == key64(other, "x")) == (one == other)


def test_the_clock_writes_utc_and_the_stopwatch_never_runs_back():
    assert len(now()) == 20
    assert now().endswith("Z")
    watch = Stopwatch()
    assert 0 <= watch.elapsed_s <= watch.elapsed_s


def _named(parts: list[int | str]) -> list[tuple[str, int | str]]:
    return [(type(part).__name__, part) for part in parts]
