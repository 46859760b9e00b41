"""The record: one folder per conversation, one line per model call, on the disk before the program sees the answer.

``line.json`` says how a conversation began; ``calls.jsonl`` holds, for each call, the ids that were put before the turn
and the turn as sampled. Each token is stored once. A line that was cut off by the end of the process is the one call
nobody was answered; it is dropped when the folder is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from journeyman import clock, durable
from journeyman.engines.protocol import TurnResult, WeightSpan
from journeyman.errors import InputError
from journeyman.tokens.context import Context

SCHEMA = 1
Kind = Literal["prompt", "observation", "forced"]


@dataclass(frozen=True)
class Piece:
    """Ids that stand before a turn and were not sampled: mask 0.

    Attributes:
        kind: ``prompt``, ``observation``, or ``forced`` for the end of a turn that was cut.
        ids: the tokens.
    """

    kind: Kind
    ids: list[int]


@dataclass(frozen=True)
class Call:
    """One model call.

    Attributes:
        key: of the conversation up to and with this turn, as a program will send it back.
        keys: keys of the messages put before the turn, then the turn's own.
        before: what was appended before it.
        ids, logprobs: as sampled; float32 values.
        finish: why it ended.
        spans: [version, start, end] of its tokens.
        style: which protocol asked.
        at: when it was recorded.
    """

    keys: list[str]
    before: list[Piece]
    ids: list[int]
    logprobs: list[float]
    finish: str
    spans: list[list[int]]
    style: str
    at: str


@dataclass(frozen=True)
class Head:
    """How a conversation began.

    Attributes:
        name: of its folder.
        head: key of system text and tools.
        parent, shared: the conversation it was forked from and the tokens they share; "" and 0 for a new one.
        keys: of the messages in the shared part.
        sampled_before: turns in the shared part.
    """

    name: str
    head: str
    parent: str = ""
    shared: int = 0
    keys: list[str] = field(default_factory=list)
    sampled_before: int = 0


class Journal:
    """Appends to the folders below ``root``.

    Args:
        root: folder of the recording; made when it is not there.
        about: what every later reader must know, e.g. family and model; a folder of another recording is refused.
    """

    def __init__(self, root: Path, about: dict[str, Any]) -> None:
        self.root = root
        path = root / "capture.json"
        if path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found.get("about") != about or found.get("schema") != SCHEMA:
                raise InputError(str(path), f"is another recording: {found.get('about')}", hint="choose another --out")
        else:
            durable.write_json(path, {"schema": SCHEMA, "about": about, "begun": clock.now()})

    def begin(self, head: Head) -> None:
        """A new conversation."""
        durable.write_json(self.root / head.name / "line.json", asdict(head))

    def append(self, name: str, call: Call) -> None:
        """A call; it is on the disk when this returns."""
        path = self.root / name / "calls.jsonl"
        data = json.dumps(asdict(call), separators=(",", ":"), allow_nan=False).encode() + b"\n"
        try:
            with path.open("ab") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            durable.sync_directory(path.parent)
        except OSError as error:
            raise durable.storage_error(path, error) from error


def call_of(result: TurnResult, keys: list[str], before: list[Piece], style: str) -> Call:
    """A turn to be recorded."""
    spans = [[span.version, span.start, span.end] for span in result.spans]
    logprobs = [float(value) for value in result.logprobs]
    return Call(keys, before, list(result.ids), logprobs, result.finish, spans, style, clock.now())


def heads_in(root: Path) -> list[Head]:
    """Every conversation of a recording, oldest first.

    Raises:
        InputError: there is no recording.
    """
    if not (root / "capture.json").is_file():
        raise InputError(str(root), "holds no recording", hint="journeyman capture --out DIR makes one")
    return [Head(**json.loads(path.read_text(encoding="utf-8"))) for path in sorted(root.glob("*/line.json"))]


def calls_in(root: Path, name: str, *, mend: bool = False) -> list[Call]:
    """The calls of one conversation; ``mend`` cuts a torn last line off the file."""
    path = root / name / "calls.jsonl"
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data.rpartition(b"\n")[0]
    whole += b"\n" if whole else b""
    if mend and len(whole) != len(data):
        os.truncate(path, len(whole))
    found = [json.loads(line) for line in whole.splitlines()]
    return [Call(**{**call, "before": [Piece(**piece) for piece in call["before"]]}) for call in found]


def contexts_in(root: Path) -> Iterator[tuple[Head, Context]]:
    """Every conversation as a context: ids, masks, logprobs and versions.

    What a fork shares is prompt to it, so that no sampled token is trained on twice.
    """
    built: dict[str, Context] = {}
    for head in heads_in(root):
        context = Context()
        if head.parent:
            context.append_prompt(built[head.parent].ids[: head.shared])
        for call in calls_in(root, head.name):
            _extend(context, call)
        built[head.name] = context
        yield head, context


def _extend(context: Context, call: Call) -> None:
    append = {
        "prompt": context.append_prompt,
        "observation": context.append_observation,
        "forced": context.append_forced,
    }
    for piece in call.before:
        append[piece.kind](piece.ids)
    versions = [v for version, start, end in call.spans for v in [version] * (end - start)]
    context.append_sampled(call.ids, np.asarray(call.logprobs, np.float32), versions)


def result_of(call: Call, trial: str) -> TurnResult:
    """The turn as its engine returned it."""
    spans = tuple(WeightSpan(*span) for span in call.spans)
    last = spans[-1].version if spans else 0
    finish: Any = call.finish
    return TurnResult(trial, list(call.ids), np.asarray(call.logprobs, np.float32), finish, last, spans)


@dataclass(frozen=True)
class CaptureReport:
    """A recording in numbers.

    Attributes:
        conversations: new ones, forks not counted.
        forks: conversations that a program continued from another place than their end.
        calls: model calls.
        sampled_tokens, stored_tokens: of all conversations; each token stored once.
        sent_tokens: sum of the prompt lengths of all calls.
        longest: the longest prompt and turn.
    """

    conversations: int
    forks: int
    calls: int
    sampled_tokens: int
    stored_tokens: int
    sent_tokens: int
    longest: int


def report_of(root: Path) -> CaptureReport:
    """Count a recording.

    Raises:
        InputError: there is none.
    """
    totals = dict.fromkeys(("conversations", "forks", "calls", "sampled", "stored", "sent", "longest"), 0)
    for head in heads_in(root):
        totals["forks" if head.parent else "conversations"] += 1
        length = head.shared
        for call in calls_in(root, head.name):
            before = sum(len(piece.ids) for piece in call.before)
            totals["calls"] += 1
            totals["sent"] += length + before
            totals["sampled"] += len(call.ids)
            totals["stored"] += before + len(call.ids)
            length += before + len(call.ids)
            totals["longest"] = max(totals["longest"], length)
    return CaptureReport(*(totals[name] for name in totals))
