"""CL7: where each document of a closing stands on a day: released, signed and held back, or open.

What makes it hard: the checklist says nothing and may list an item twice, mails say it in words, a signed document is
not a released one, a later mail may take a release back, and mails of later days do not count yet.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "closing_status.xlsx"
OPEN, SIGNED, RELEASED = "open", "signed", "released"
NO_MAIL = "none"
SENT = re.compile(r"m\d+\.(\d{4})(\d\d)(\d\d)\d{4}@")
LISTED = re.compile(r'\["(CK\d+)", ("(?:[^"\\]|\\.)*"),')


@dataclass(frozen=True)
class CL7:
    """See the module."""

    id: str = "CL7"
    domain: str = "law"
    title: str = "status of a closing checklist from mails"
    traps: tuple[str, ...] = ("T14", "T18")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        rows = [_entry(office, row) for row in office.truth.rows("SELECT * FROM checklist ORDER BY id")]
        days = sorted({said[0] for row in rows for said in row["said"]})
        if len(days) < 5:
            raise Unbindable("too few mails about the closing")
        day = days[rng.randrange(len(days) // 2, len(days) - 1)]
        missed = [_at({**row, "said": row["said"][:1]}, day) for row in rows]
        now = [_at(row, day) for row in rows]
        if len(Counter(row["status"] for row in now)) < 3:
            raise Unbindable("not every status occurs")
        ask = {"day": day, "file": FILE}
        answer = {"items": now}
        late = [i for i, row in enumerate(rows) if row["said"] and row["said"][-1][0] > day]
        held = [i for i, row in enumerate(now) if row["status"] == SIGNED]
        careless = [{**_at(row, office.today), "status": RELEASED if row["said"] else OPEN} for row in rows]
        planted = office.trap("T14", "checklist:")
        again = planted.site.partition(":")[2] if planted else ""
        wrong = _wrong(rows, now, missed, office.today, again)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(now, late, held),
            (FILE,), wrong, trap_blind={"items": _repeated(careless, again)},
            single={"items": [row for row in now if row["status"] == RELEASED][:1]},
            facts=(*(f"checklist:{row['no']}" for row in now if row["status"] != OPEN),
                   *((f"checklist:{again}:number",) if again else ())),
            reads=tuple(document.path for document in office.of_kind("checklist")), unordered=("items",),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"late": len(late), "held": len(held), "open": sum(row["status"] == OPEN for row in now),
                   "twice": bool(again)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        paths = yield from reading.list_files("*closing*checklist*.xlsx")
        if not paths:
            raise Lost("no checklist")
        text = yield from reading.tab(paths[0])
        found = yield ToolCall("mail_search_mail", {"subject": "Closing:", "limit": 200})
        said: dict[str, tuple[str, str]] = {}
        for line in found.splitlines():
            mail = json.loads(line) if line.startswith("{") else None
            if mail is None or mail["timestamp"][:10] > ask["day"]:
                continue
            full = json.loads((yield ToolCall("mail_read_mail", {"mail_id": mail["mail_id"]})))
            words = " ".join(full["body"].split())
            status = SIGNED if "held in escrow" in words else RELEASED if "are released" in words else OPEN
            item = full["subject"].removeprefix("Re: ").removeprefix("Closing: ")
            said.setdefault(item, (status, mail["mail_id"]))  # the newest comes first
        rows = []
        for number, quoted in dict(LISTED.findall(text)).items():
            status, mail_id = said.get(json.loads(quoted), (OPEN, NO_MAIL))
            rows.append({"no": number, "item": json.loads(quoted), "status": status, "mail": mail_id})
        yield from reading.deliver_workbook(FILE, layout({"items": rows}))


def _entry(office: Office, row: Mapping[str, Any]) -> dict[str, Any]:
    """An item with everything that mails say about it, in the order of time: day, status, mail."""
    said = []
    for fact in (f"checklist:{row['id']}", f"checklist:{row['id']}:withdrawn"):
        places = [one.locator.removeprefix("msg:").strip("<>").partition("/")[0] for one in office.where(fact)]
        for mail in sorted(set(places)):
            if match := SENT.search(mail):
                said.append(("-".join(match.groups()), str(office.facts[fact].value), mail))
    last = max(said)[1] if said else OPEN
    if last != row["status"] or len({day for day, _, _ in said}) != len(said):
        raise Unbindable(f"{len(said)} mails about {row['item']}")
    return {"no": row["id"], "item": row["item"], "said": sorted(said)}


def _at(row: Mapping[str, Any], day: str) -> dict[str, Any]:
    """The item as it stood at the end of a day."""
    known = [one for one in row["said"] if one[0] <= day]
    _, status, mail = known[-1] if known else ("", OPEN, NO_MAIL)
    return {"no": row["no"], "item": row["item"], "status": status, "mail": mail}


def _repeated(rows: Sequence[Mapping[str, Any]], number: str) -> list[dict[str, Any]]:
    """Rows of which that with this number stands there twice."""
    return [dict(row) for row in rows for _ in range(2 if row["no"] == number else 1)]


def _wrong(
    rows: Sequence[Mapping[str, Any]], now: Sequence[Mapping[str, Any]], missed: Sequence[Mapping[str, Any]],
    today: str, again: str,
) -> tuple[Wrong, ...]:  # fmt: skip
    last = [_at(row, today) for row in rows]
    as_released = [{**row, "status": RELEASED if row["status"] == SIGNED else row["status"]} for row in now]
    exchanged = {SIGNED: RELEASED, RELEASED: SIGNED, OPEN: OPEN}
    silent = [{**row, "status": OPEN, "mail": NO_MAIL} for row in now]
    shifted = [{**row, "status": now[i - 1]["status"], "mail": now[i - 1]["mail"]} for i, row in enumerate(now)]
    tried: dict[str, Sequence[Mapping[str, Any]]] = {
        "later mails counted": last,
        "signed taken for released": as_released,
        "swapped-entity": shifted,
        "stale-version": silent,
        "statuses exchanged": [{**row, "status": exchanged[row["status"]]} for row in now],
        "open items left out": [row for row in now if row["status"] != OPEN],
    }
    found = [Wrong(name, {"items": [dict(one) for one in given]}, "every item") for name, given in tried.items()]
    if list(missed) != list(now):
        found.append(Wrong("T18:correction missed", {"items": list(missed)}, "every item", "T18"))
    if again:
        found.append(Wrong("T14:listed twice", {"items": _repeated(now, again)}, "each once", "T14"))
    return tuple(found)


def _checks(now: Sequence[Mapping[str, Any]], late: Sequence[int], held: Sequence[int]) -> tuple[Check, ...]:
    columns = [{"name": "No"}, {"name": "Item"}, {"name": "Status"}, {"name": "Mail"}]

    def lines(which: Sequence[int]) -> list[list[Any]]:
        return [[now[i]["no"], now[i]["item"], now[i]["status"], {"one_of": [now[i]["mail"], f"<{now[i]['mail']}>"]}]
                for i in which]  # fmt: skip

    part = {"file": FILE, "columns": columns, "key": ["No"], "extra": "ignored"}
    return (
        Check("book", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("every item", "table", {**part, "rows": lines(range(len(now))), "extra": "wrong"}, weight=0.5,
              trap_ids=("T14", "T18")),
        Check("each once", "members", {"file": FILE, "column": "No", "items": [row["no"] for row in now]}, weight=0.1,
              stage="intermediate", trap_ids=("T14",)),
        Check("not yet", "table", {**part, "rows": lines(late)}, weight=0.2, stage="intermediate"),
        Check("held back", "table", {**part, "rows": lines(held)}, weight=0.2, stage="intermediate"),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """One sheet, a row per item."""
    rows = [[row.get(key) for key in ("no", "item", "status", "mail")] for row in answer["items"]]
    return [sheet("Status", ["No", "Item", "Status", "Mail"], rows)]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        f"The closing of the sale of {office.setting.company} is being prepared.",
        f"For the closing call the partner wants to know where the documents of {office.setting.company} stand.",
        f"Somebody kept the closing checklist of {office.setting.company} without its status column.",
    ))  # fmt: skip
    return f"""{opener}

Take every item of the closing checklist in the folder deals and find its status as it was at the end of
{ask["day"]}, from the mails about the closing of that day and before; later mails do not count.

Save `artifacts/{FILE}` with one sheet, headers in row 1 and one row per item, which its number tells apart:

- `No`, `Item`: as in the checklist
- `Status`: `{RELEASED}` where all have signed and the signature pages are released, `{SIGNED}` where all have signed
  and pages are still held in escrow, otherwise `{OPEN}`
- `Mail`: mail_id of the mail that says so (the last one, where there are several), `{NO_MAIL}` where there is none
"""
