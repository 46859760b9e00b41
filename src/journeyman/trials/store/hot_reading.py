"""Reading trials in the hot layout, those of killed writers included."""

from __future__ import annotations

import json
from collections.abc import Iterator

from journeyman.digest import sha256
from journeyman.engines.experts import Experts, unpacked
from journeyman.errors import InputError
from journeyman.tokens.context import Columns, Source
from journeyman.trials.store.columns import has_turn, joined
from journeyman.trials.store.events import read_events
from journeyman.trials.store.hot import DONE, EVENTS, EXPERTS, RECORD, REMOVED, TOKENS
from journeyman.trials.store.place import Place
from journeyman.trials.store.rows import TrialRow, row_of
from journeyman.trials.store.schema import Record, checked_version, lifted
from journeyman.trials.store.stream import StreamContent, read_stream


def hot_directories(place: Place) -> Iterator[str]:
    """Every trial directory below a run, sorted, closed or not."""
    for shard in place.directories("trials"):
        yield from place.directories(shard)


def read_record(place: Place, directory: str) -> Record | None:
    """The record of a closed trial in the current schema; None while it is open."""
    if not place.exists(f"{directory}/{DONE}"):
        return None
    where = f"{directory}/{RECORD}"
    try:
        return lifted(json.loads(place.read(where)), place.name(where))
    except (ValueError, KeyError, FileNotFoundError) as error:
        raise InputError(place.name(where), f"is damaged: {error}", hint="its DONE holds the sha256 it had") from error


def damaged_files(place: Place, directory: str) -> list[str]:
    """Files of a closed trial that differ from the sha256 in its ``DONE``; empty when all is as it was closed."""
    seal = json.loads(place.read(f"{directory}/{DONE}"))
    checked_version(seal.get("schema_version"), place.name(f"{directory}/{DONE}"))

    def differs(name: str, wanted: str) -> bool:
        path = f"{directory}/{name}"
        return not place.exists(path) or sha256(place.read(path)) != wanted

    return [name for name, entry in seal["files"].items() if differs(name, entry["sha256"])]


def read_calls(place: Place, directory: str) -> StreamContent:
    """The model calls of a trial, up to a torn tail.

    Raises:
        InputError: ``gc`` has removed them.
    """
    if place.exists(f"{directory}/{REMOVED}"):
        raise InputError(place.name(directory), "its tokens were removed by gc", hint="read the packed run instead")
    where = f"{directory}/{TOKENS}"
    data = place.read(where) if place.exists(where) else b""
    return read_stream(data, place.name(where))


def read_hot(place: Place, directory: str) -> Columns:
    """The token columns of a trial, ``[tokens]`` each."""
    return joined(read_calls(place, directory).calls)


def read_hot_experts(place: Place, directory: str) -> Experts | None:
    """The routed experts of a closed trial, [tokens, layers, k]; None where none were told.

    Raises:
        InputError: the file is damaged.
    """
    where = f"{directory}/{EXPERTS}"
    if not place.exists(where):
        return None
    try:
        return unpacked(place.read(where))
    except ValueError as error:
        raise InputError(place.name(where), f"is damaged: {error}") from error


def read_hot_event_text(place: Place, directory: str) -> str:
    """The event log of a trial as it was written, up to a torn tail."""
    where = f"{directory}/{EVENTS}"
    data = place.read(where) if place.exists(where) else b""
    return data[: read_events(data).good_bytes].decode()


def row_of_directory(place: Place, directory: str) -> TrialRow | None:
    """The row of a trial directory; None when its writer was killed before it said whose it was."""
    record = read_record(place, directory)
    if record is not None:
        return row_of(record, "hot", directory)
    content = read_calls(place, directory)
    if not content.trial_id:
        return None
    facts = {
        "trial_id": content.trial_id,
        "attempt": content.attempt,
        "n_tokens": sum(len(call.ids) for call in content.calls),
        "n_sampled": sum(int((call.source == Source.SAMPLED).sum()) for call in content.calls),
        "n_calls": sum(has_turn(call) for call in content.calls),
    }
    return row_of(facts, "hot", directory, is_done=False)
