"""Versions of what is stored, and the steps from each older version to the current one.

Version 3 is current: flat token columns, one record batch per model call, and in the record the segments of a
context that was edited. Version 2 has the same columns, and segments of some trials only: where they are missing they
are unknown (None), and readers infer them from the tokens. Version 1 is the first layout: one row per model call with
lists (``input_ids``, ``output_ids``, ``logprobs``, ``policy_version``), and a record whose outcome and reward had other
names. Readers lift older versions in memory; nothing is rewritten in place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from journeyman.errors import InputError

VERSION = 3
FLAT_SINCE = 2
"""The version from which on token columns are flat."""
VERSION_KEY = b"journeyman.schema_version"
TRIAL_KEY = b"journeyman.trial_id"
ATTEMPT_KEY = b"journeyman.attempt"

Record = dict[str, Any]

_RENAMED_IN_2 = {"outcome_class": "outcome", "score": "reward"}


def checked_version(found: object, where: str) -> int:
    """The version of a stored thing. Raises InputError for one that this program cannot read."""
    try:
        version = int(found.decode() if isinstance(found, bytes) else str(found))
    except ValueError:
        version = -1
    if not 1 <= version <= VERSION:
        newer = "written by a newer journeyman" if version > VERSION else "no version of this store"
        raise InputError(where, f"has schema version {found!r}: {newer}", allowed=f"1 to {VERSION}")
    return version


def lifted(record: Record, where: str) -> Record:
    """A trial's record in the current version; the argument is not changed.

    Raises:
        InputError: the record has no version that can be read.
    """
    version = checked_version(record.get("schema_version", 1), where)
    while version < VERSION:
        record = RECORD_STEPS[version](record)
        version += 1
    return record


def _record_1_to_2(record: Record) -> Record:
    renamed = {_RENAMED_IN_2.get(name, name): value for name, value in record.items()}
    verdict = renamed.get("verdict")
    if isinstance(verdict, dict) and "status" in verdict:
        renamed["verdict"] = {("kind" if name == "status" else name): value for name, value in verdict.items()}
    return {**renamed, "schema_version": 2}


def _record_2_to_3(record: Record) -> Record:
    return {"segments": None, **record, "schema_version": 3}


RECORD_STEPS: dict[int, Callable[[Record], Record]] = {1: _record_1_to_2, 2: _record_2_to_3}
"""The step that lifts a record of the given version by one."""
