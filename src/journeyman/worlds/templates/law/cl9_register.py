"""CL9: where the register of shares and the minutes of the board that resolved each issue contradict each other.

What makes it hard: a contradiction may lie in the number of shares or in the person, most entries have none, and there
are extracts from minutes that differ from these.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import json_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Planted

FILE = "contradictions.json"
RESOLVED = re.compile(
    r"Resolution (RES-\d+): IT WAS RESOLVED to allot and issue ([\d.,' ]+) (.+?) shares to (.+?), fully paid"
)
ENTRY = re.compile(r'\["(SR\d+)", ("[^"]*"), ("(?:[^"\\]|\\.)*"), ("[^"]*"), ([\d.]+), "[^"]*", "(RES-\d+)"\]')
SQL = (
    "SELECT s.id, s.holder, s.shares, s.reference, s.date, r.person, r.shares AS resolved FROM share_entry s"
    " JOIN resolution r ON r.id = s.reference ORDER BY s.id"
)


@dataclass(frozen=True)
class CL9:
    """See the module."""

    id: str = "CL9"
    domain: str = "law"
    title: str = "register of shares against the minutes of the board"
    traps: tuple[str, ...] = ("T12",)

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = office.truth.rows(SQL)
        count = max(4, len(rows) - rng.randrange(0, 3 if knobs.fan_out < 3 else 1))
        start = rng.randrange(0, max(1, len(rows) - count + 1))
        rows = rows[start : start + count]
        found = contradictions(rows)
        if not found or len(found) == len(rows):
            raise Unbindable("register and minutes agree")
        ask = {"first": rows[0]["id"], "last": rows[-1]["id"], "file": FILE}
        answer = {"checked": len(rows), "contradictions": found}
        numbers = [row for row in found if row["field"] == "shares"]
        blind = numbers if len(numbers) < len(found) else found[:-1]
        wrong, believed = _wrong(answer, rows), contradictions(_extracted(rows, office.planted))
        if believed != found:
            blind = believed
            wrong += (Wrong("T12:extracts believed", {**answer, "contradictions": believed}, "contradictions", "T12"),)
        kinds = {r["entry"]: f"resolution:{r['resolution']}:{r['field']}" for r in found}
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(answer, rows),
            (FILE,), wrong, trap_blind={**answer, "contradictions": blind},
            single={**answer, "contradictions": []}, facts=tuple(kinds.values()),
            reads=tuple(document.path for document in office.of_kind("share_register")),
            traps=tuple({one.trap for one in wrong if one.trap}), unordered=("contradictions",), knobs=knobs,
            notes={"entries": len(rows), "contradictions": len(found)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: json_bytes(answer)}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        registers = yield from reading.list_files("*share*register*.xlsx", "legal")
        minutes = yield from reading.list_files("*board*minutes*.pdf", "legal")
        if not registers or not minutes:
            raise Lost("no register or no minutes")
        text = yield from reading.tab(registers[0])
        entered = {
            match[1]: {"holder": json.loads(match[3]), "shares": int(float(match[5])), "reference": match[6]}
            for match in ENTRY.finditer(text)
            if ask["first"] <= match[1] <= ask["last"]
        }
        resolved: dict[str, tuple[int, str]] = {}
        for path in minutes:
            flat = " ".join((yield from reading.document_text(path)).split())
            if "extract and the minutes differ, the signed minutes count" in flat:
                continue
            for match in RESOLVED.finditer(flat):
                resolved[match[1]] = (reading.whole_number(match[2]), match[4])
        rows = []
        for number, entry in sorted(entered.items()):
            if entry["reference"] not in resolved:
                raise Lost(f"no minutes with {entry['reference']}")
            shares, person = resolved[entry["reference"]]
            rows.append({"id": number, **entry, "resolved": shares, "person": person})
        answer = {"checked": len(rows), "contradictions": contradictions(rows)}
        yield from reading.deliver_text(FILE, json_bytes(answer))


def contradictions(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Entries whose holder or number of shares differs from the resolution, one line per difference."""
    found = []
    for row in rows:
        for field, register, minutes in (
            ("shares", int(row["shares"]), int(row["resolved"])),
            ("holder", row["holder"], row["person"]),
        ):
            if register != minutes:
                found.append({"entry": row["id"], "resolution": row["reference"], "field": field,
                              "register": register, "minutes": minutes})  # fmt: skip
    return found


def _extracted(rows: Sequence[Mapping[str, Any]], planted: Sequence[Planted]) -> list[dict[str, Any]]:
    """The same entries beside what extracts from the minutes say, which rank below the minutes."""
    said = {one.site.partition(":")[2]: one.wrong for one in planted if one.site.startswith("resolution:")}
    return [
        {**row, "resolved": said[row["reference"]]["shares"], "person": said[row["reference"]]["holder"]}
        if row["reference"] in said
        else {**row}
        for row in rows
    ]


def _wrong(answer: Answer, rows: Sequence[Mapping[str, Any]]) -> tuple[Wrong, ...]:
    found = list(answer["contradictions"])
    known = [row["entry"] for row in found]
    sound = next(row for row in rows if row["id"] not in known)
    more = {"entry": sound["id"], "resolution": sound["reference"], "field": "shares", "register": sound["shares"],
            "minutes": sound["shares"]}  # fmt: skip
    turned = [{**row, "register": row["minutes"], "minutes": row["register"]} for row in found]
    moved = [{**row, "entry": sound["id"], "resolution": sound["reference"]} if i == 0 else row
             for i, row in enumerate(found)]  # fmt: skip
    believed = [{**row, "minutes": row["register"]} for row in found]
    tried = {
        "swapped-entity": moved,
        "stale-version": believed,
        "sides exchanged": turned,
        "nothing found": [],
        "a sound entry reported": [*found, more],
        "one left out": found[:-1] if len(found) > 1 else [more],
    }
    return tuple(Wrong(name, {**answer, "contradictions": given}, "contradictions") for name, given in tried.items())


def _checks(answer: Answer, rows: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    found = answer["contradictions"]
    keys = ("entry", "field", "resolution", "register", "minutes")
    columns: list[dict[str, Any]] = [{"name": key, "tol": {"abs": 0.4}} for key in keys]
    return (
        Check("shape", "json.shape", {"file": FILE, "keys": {"checked": "number", "contradictions": "list"}},
              kind="gate"),
        Check("contradictions", "table", {
            "file": FILE, "path": "contradictions", "columns": columns, "key": ["entry", "field"],
            "rows": [[row[key] for key in keys] for row in found],
        }, weight=0.7, trap_ids=("T12",)),
        Check("entries", "members", {
            "file": FILE, "path": "contradictions", "member": "resolution",
            "items": sorted({row["resolution"] for row in found}),
        }, weight=0.2, stage="intermediate"),
        Check("all looked at", "json.fields", {"file": FILE, "fields": {"checked": len(rows)}}, weight=0.1,
              stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"Before the shares in {office.setting.company} are sold, title has to be checked.",
        f"The buyer's counsel doubts that the share register of {office.setting.company} is right.",
        f"Verify the share capital of {office.setting.company} for the legal due diligence report.",
    ))  # fmt: skip
    return f"""{opener}

Compare each entry of the register of shares from {ask["first"]} to {ask["last"]} (both included) with the minutes of
the board meeting that contain the resolution which the entry names (legal/corporate). Look at two things: the number of
shares and the person to whom they were issued. Where papers about one resolution differ, they say themselves which of
them counts.

Save `artifacts/{FILE}`, a JSON object with

- `checked`: number of entries that you compared
- `contradictions`: a list with one object per difference and no others: `entry` (such as SR00), `resolution` (such as
  RES-00), `field` (`shares` or `holder`), `register` and `minutes` (what each says: a bare number of shares, or the
  full name)
"""
