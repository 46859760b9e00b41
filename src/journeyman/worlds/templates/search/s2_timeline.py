"""S2: who knew what when: a timeline of what bidders told the banker, and who led after each message.

What makes it hard: prices stand in letters, improvements in mails alone; drafts were never sent, a message after the
cut-off does not count, and some bidders write under the name of a company formed for the purpose.
"""

from __future__ import annotations

import json
import mailbox
import random
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.drafting import sheet, xlsx_bytes
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "timeline.xlsx"
HEAD = ("No", "Received", "Bidder", "Price", "Leader", "Best price", "Source")
KEYS = ("no", "received", "bidder", "price", "leader", "best", "source")
MONEY = re.compile(r"(?:[A-Z]{3}|[$€£]) ?\d[\d.,'\u2019 ]*\d|\d[\d.,'\u2019 ]*\d ?(?:[A-Z]{3}|[$€£])")

Told = dict[str, Any]
"""``at`` (ISO instant), ``bidder``, ``price``, ``source`` (mail id): one message that states a price."""


@dataclass(frozen=True)
class S2:
    """See the module."""

    id: str = "S2"
    domain: str = "search"
    title: str = "timeline of what bidders told whom, and who led when"
    traps: tuple[str, ...] = ("T1", "T18", "T21")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        sent = _sent(office)
        told = _told(office, sent)
        bidders = sorted({one["bidder"] for one in told})
        if len(bidders) < 4:
            raise Unbindable("fewer than four bidders wrote")
        gone = sorted(rng.sample(bidders, rng.randint(0, 2)))
        days = sorted({one["at"][:10] for one in told})
        until = rng.choice([*days[len(days) // 2 :], office.today])
        deal = office.truth.value("SELECT name FROM deal WHERE id = 'D1'")
        ask = {"deal": deal, "gone": gone, "until": until, "banker": office.roles["banker"]["name"], "file": FILE}
        rows = timeline(told, ask)
        if len(rows) < 3:
            raise Unbindable("fewer than three messages in the period")
        late, drafts = _late(office, sent), _drafts(office)
        answer: Answer = {"messages": rows}
        wrong = _wrong(told, late, drafts, ask, rows)
        first = [one for one in told if not one["is_improved"]]
        shown = [*first, *late, *drafts]
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(rows), (FILE,),
            wrong, trap_blind={"messages": timeline(shown, {**ask, "gone": []})},
            single={"messages": rows[-1:]}, facts=tuple(one["fact"] for one in told),
            reads=tuple(d.path for d in office.of_kind("bid_letter")),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"messages": len(rows), "until": until, "gone": len(gone)},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        return {FILE: xlsx_bytes(layout(answer))}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        after = (date.fromisoformat(ask["until"]) + timedelta(days=1)).isoformat()
        listed = yield ToolCall("mail_search_mail", {"subject": ask["deal"], "before_date": after, "limit": 200})
        mails = [json.loads(line) for line in listed.splitlines() if line.startswith("{")]
        everything = yield ToolCall("mail_search_mail", {"subject": f"Re: {ask['deal']}", "limit": 200})
        refused = set()
        for line in everything.splitlines():
            if line.startswith("{") and "not taken into account" in " ".join(line.split()):
                refused.add(json.loads(line)["subject"].removeprefix("Re: "))
        told: list[Told] = []
        for mail in mails:
            if mail["subject"] in refused or not re.search(r"our offer$|improvement", mail["subject"]):
                continue
            if mail["subject"].startswith("Re:"):
                continue
            text = yield ToolCall("mail_read_mail", {"mail_id": mail["mail_id"]})
            body = str(json.loads(text)["body"]).strip()
            price = MONEY.search(body)
            if price is None:
                price = yield from _price_of(mail["attachments"][0])
            told.append({"at": mail["timestamp"], "bidder": body.splitlines()[-1].strip(),
                         "price": reading.whole_number(price[0]), "source": mail["mail_id"]})  # fmt: skip
        yield from reading.deliver_workbook(FILE, layout({"messages": timeline(told, ask)}))


def _price_of(name: str) -> reading.Reading:
    """The match of the price in a letter."""
    paths = yield from reading.list_files(name)
    if not paths:
        raise Lost(f"{name} is not in the files")
    text = " ".join((yield from reading.document_text(paths[0])).split())
    part = re.search(r"\bprice\b(.*?)\bfinancing\b", text, re.IGNORECASE)
    found = MONEY.search(part[1]) if part else None
    if found is None:
        raise Lost(f"{paths[0]} names no price")
    return found


def timeline(told: Sequence[Told], ask: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rows in the order in which the messages came in, with the best standing price after each."""
    standing: dict[str, int] = {}
    rows = []
    counted = [one for one in told if one["bidder"] not in ask["gone"] and one["at"][:10] <= ask["until"]]
    for number, one in enumerate(sorted(counted, key=lambda one: (one["at"], one["source"])), start=1):
        standing[one["bidder"]] = one["price"]
        leader = max(standing, key=lambda name: (standing[name], name))
        rows.append({"no": number, "received": one["at"][:10], "bidder": one["bidder"], "price": one["price"],
                     "leader": leader, "best": standing[leader], "source": one["source"]})  # fmt: skip
    return rows


def _sent(office: Office) -> dict[str, datetime]:
    """Mail id without brackets -> when it was sent."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mailbox"
        path.write_bytes(office.apps["mail/mailbox.mbox"])
        box = mailbox.mbox(path)
        found = {str(m["Message-ID"]).strip("<> "): parsedate_to_datetime(str(m["Date"])) for m in box}
        box.close()
    return {name: when.astimezone(UTC) for name, when in found.items()}


def _told(office: Office, sent: Mapping[str, datetime]) -> list[Told]:
    """Every price that a bidder stated in time, from the truth. Raises Unbindable where prices tie."""
    rows = office.truth.rows("SELECT * FROM bid ORDER BY id")
    if len({row["price"] for row in rows}) != len(rows):
        raise Unbindable("two offers of one price")
    found = []
    for row in rows:
        mails = [key.strip("<>") for key, event in office.source_of.items()
                 if event == row["source_event_id"] and key.strip("<>") in sent]  # fmt: skip
        if len(mails) != 1:
            raise Unbindable(f"{len(mails)} mails brought offer {row['id']}")
        found.append({"at": sent[mails[0]].isoformat(), "bidder": row["bidder"], "price": int(row["price"]),
                      "source": f"<{mails[0]}>", "is_improved": bool(row["supersedes"]),
                      "fact": f"bid:{row['id']}:price"})  # fmt: skip
    return found


def _late(office: Office, sent: Mapping[str, datetime]) -> list[Told]:
    """Messages after the cut-off."""
    found = []
    for fact_id, fact in office.facts.items():
        if fact_id.startswith("bid:") and fact_id.endswith(":late"):
            for place in office.where(fact_id):
                mail = place.locator.removeprefix("msg:").split("/")[0]
                if mail in sent:
                    found.append({"at": sent[mail].isoformat(), "bidder": fact.subject.removeprefix("bid:"),
                                  "price": int(fact.value), "source": f"<{mail}>"})  # fmt: skip
    return found


def _drafts(office: Office) -> list[Told]:
    """Unsigned letters that lie in the files and were never sent."""
    found = []
    for document in office.of_kind("bid_draft"):
        for fact_id, fact in office.facts.items():
            if fact_id.endswith(":draft:price") and any(p.path == document.path for p in office.where(fact_id)):
                found.append({"at": f"{document.known_from}T12:00:00", "bidder": document.subject.removeprefix("bid:"),
                              "price": int(fact.value), "source": document.path})  # fmt: skip
    return found


def _wrong(
    told: Sequence[Told], late: Sequence[Told], drafts: Sequence[Told], ask: Mapping[str, Any],
    rows: list[dict[str, Any]],
) -> tuple[Wrong, ...]:  # fmt: skip
    swapped = [{**row, "price": rows[i - 1]["price"]} for i, row in enumerate(rows)]
    by_name = [{**row, "no": i} for i, row in enumerate(sorted(rows, key=lambda row: row["bidder"]), start=1)]
    steady = [{**row, "leader": rows[0]["bidder"], "best": rows[0]["price"]} for row in rows]
    earlier = [{**row, "leader": rows[i - 1]["leader"], "best": rows[i - 1]["best"]} for i, row in enumerate(rows)]
    first = [one for one in told if not one["is_improved"]]
    scaled = [{**row, "price": row["price"] / 1000, "best": row["best"] / 1000} for row in rows]
    found = [
        Wrong("thousands for units", {"messages": scaled}, "timeline"),
        Wrong("swapped-entity", {"messages": swapped}, "timeline"),
        Wrong("by name", {"messages": by_name}, "timeline"),
        Wrong("the first leads for ever", {"messages": steady}, "timeline"),
        Wrong("leader before the message", {"messages": earlier}, "timeline"),
        Wrong("stale-version", {"messages": rows[:-1]}, "timeline"),
        Wrong("everybody", {"messages": timeline(told, {**ask, "gone": []})}, "timeline"),
        Wrong("T18:letters only", {"messages": timeline(first, ask)}, "timeline", "T18"),
        Wrong("T21:after the cut-off", {"messages": timeline([*told, *late], ask)}, "timeline", "T21"),
        Wrong("T1:unsigned draft", {"messages": timeline([*told, *drafts], ask)}, "timeline", "T1"),
    ]
    return tuple(one for one in found if one.answer["messages"] != rows)


def _checks(rows: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    columns: list[dict[str, Any]] = [{"name": name} for name in HEAD]
    columns[3]["tol"] = columns[5]["tol"] = {"abs": 0.5}
    cells = [
        [row["no"], {"date": row["received"]}, row["bidder"], row["price"], row["leader"], row["best"],
         {"one_of": [row["source"], row["source"].strip("<>")]}]
        for row in rows
    ]  # fmt: skip
    base: dict[str, Any] = {"file": FILE, "columns": columns, "rows": cells, "key": ["No"]}
    return (
        Check("files", "present", {"files": [FILE]}, kind="gate", no_op="pass"),
        Check("timeline", "table", {**base, "ordered": True}, weight=0.8, trap_ids=("T1", "T18", "T21")),
        Check("messages", "table", {**base, "only": ["Received", "Bidder", "Price"], "credit": "f1"}, weight=0.2,
              stage="intermediate", required=False),
    )  # fmt: skip


def layout(answer: Answer) -> list[dict[str, Any]]:
    """One sheet, one row per message."""
    return [sheet("Timeline", HEAD, [[row.get(key) for key in KEYS] for row in answer["messages"]])]


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    company = office.setting.company
    opener = rng.choice((
        f"After {ask['deal']} somebody asks what the banker of {company} knew when.",
        f"Counsel to the sellers of {company} wants a record of how the offers in {ask['deal']} came in.",
        f"For the file on {ask['deal']}: reconstruct from the mails how the offers for {company} developed.",
    ))  # fmt: skip
    gone = f"\nLeave these bidders out altogether: {', '.join(ask['gone'])}." if ask["gone"] else ""
    return f"""{opener}

List every message by which a bidder told {ask["banker"]} a price in {ask["deal"]}, in the order in which they came in,
up to and including {ask["until"]}. An offer came in with the mail that brought the letter; an improvement with the mail
that states it. What was never sent, and what the banker refused as too late, does not count.{gone}

Save `artifacts/{FILE}` with one sheet, headers in row 1, one row per message: `No` (from 1); `Received` (the mail's
date, ISO 8601); `Bidder` (the name of the group, not of a company formed for the purpose); `Price` (whole
{office.setting.currency}); `Leader` and `Best price` (the bidder with the highest standing price after this message,
and that price); `Source` (mail_id of the mail).
"""
