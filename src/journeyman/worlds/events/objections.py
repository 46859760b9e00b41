"""A statement of account that binds unless somebody objects in time; in some worlds its sender corrects it later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from random import Random
from typing import Any

from journeyman.worlds.content import Mail
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.calendars import add_working_days, is_working_day
from journeyman.worlds.truth.store import Row

ANEW = "runs anew from the day on which you receive this mail"


def statement_received(draft: Draft, event: Row) -> None:
    """A statement of account; the deadline for objections follows from the contract and the calendar."""
    setting, rng = draft.setting, draft.rng("statement")
    contracts = [c for c in draft.notes["contracts"].values() if any(k["type"] == "objection" for k in c["clauses"])]
    contract = rng.choice(sorted(contracts, key=lambda c: str(c["id"])))
    received = setting.instant(event["date"], rng)
    clause = next(c for c in contract["clauses"] if c["type"] == "objection")
    off = {row["date"] for row in draft.truth.rows("SELECT date FROM holiday")}
    due = add_working_days(received.date(), clause["params_json"]["value"], off).isoformat()
    _file(draft, contract["id"], "FL1", due, event["id"], event["date"])
    amount = 100 * rng.randrange(200, 4000)
    shown = draft.fact(
        "statement:amount",
        setting.money(amount),
        amount,
        "currency",
        currency=setting.currency,
        subject=f"contract:{contract['id']}",
        known=event["date"],
    )
    domain = "".join(c for c in contract["counterparty"].lower() if c.isalnum())[:20]
    mail = draft.mail(
        event["id"],
        received,
        f"Accounts {contract['counterparty']} <accounts@{domain}.example>",
        [draft.roles["controller"], draft.roles["counsel"]],
        f"Statement of account, {contract['id']}",
        f"Dear Sir or Madam,\n\nplease find our statement of account under {contract['id']}: balance in our favour"
        f" {shown}. It is binding unless you object in time.\n\n{contract['counterparty']}\n",
    )
    draft.notes["statement"] = {"contract": contract["id"], "received": event["date"]}
    _holidays(draft, event, rng)
    if "T18" in draft.notes.get("traps", ()):
        _correct(draft, contract, mail, {"amount": amount, "due": due, "days": clause["params_json"]["value"]}, off)


def _file(draft: Draft, contract: str, number: str, due: str, event: str, day: str) -> None:
    row = {"id": number, "item": f"objection under {contract}", "status": "open", "due": due, "done": None}
    draft.truth.add("filing", row, event=event, at=day)


def _holidays(draft: Draft, event: Row, rng: Random) -> None:
    """Public holidays of this year and the next as items of the calendar."""
    days = draft.truth.rows(
        "SELECT date FROM holiday WHERE date >= :d ORDER BY date LIMIT 22", d=f"{event['date'][:4]}-01-01"
    )
    for day in (row["date"] for row in days):
        surface = draft.fact(f"holiday:{day}", "Public holiday", day, "date", rows=(f"holiday:{day}",))
        draft.meet(
            event["id"],
            draft.setting.instant(day, rng).replace(hour=0, minute=0),
            24 * 60,
            surface,
            "Offices closed at the seat of the company.",
            draft.roles["hrbp"],
            [draft.roles["counsel"]],
        )


def _correct(draft: Draft, contract: Mapping[str, Any], mail: Mail, was: Mapping[str, Any], off: set[str]) -> None:
    """In worlds with trap T18: the statement is void, another mail takes its place, and time begins again.

    Args:
        was: ``amount``, ``due`` of the first statement; ``days`` of the objection period.
        off: public holidays.
    """
    setting, rng, received = draft.setting, draft.rng("statement corrected"), mail.sent.date()
    later = [received + timedelta(days=n) for n in range(1, (setting.today - received).days)]
    later = [day for day in later if is_working_day(day, off)]  # on another day the same deadline could follow
    if not later:
        return
    day = rng.choice(later)
    at, due = day.isoformat(), add_working_days(day, was["days"], off).isoformat()
    amount = 100 * round(was["amount"] * rng.uniform(0.5, 0.9) / 100)
    event = draft.event("statement corrected", day, "Statement of account corrected by its sender")
    draft.truth.close("filing", "FL1", valid_to=at)
    _file(draft, contract["id"], "FL1b", due, event, at)
    about: dict[str, Any] = {"subject": f"contract:{contract['id']}", "known": at, "rows": ("filing:FL1b",)}
    shown = draft.fact("statement:amount:corrected", setting.money(amount), amount, "currency",
                       currency=setting.currency, supersedes="statement:amount", **about)  # fmt: skip
    anew = draft.fact("statement:received:corrected", ANEW, at, "date", **about)
    draft.mail(
        event,
        setting.instant(at, rng),
        mail.sender,
        [draft.roles["controller"], draft.roles["counsel"]],
        f"Correction of our statement of account, {contract['id']}",
        f"Dear Sir or Madam,\n\nour statement of account under {contract['id']} of {setting.day(received)} left out"
        f" a payment of yours and is void. The balance in our favour is {shown}. This mail takes its place, and the"
        f" time in which you may object {anew}.\n\n{contract['counterparty']}\n",
        reply_to=mail,
    )
    draft.notes["statement"]["received"] = at
    draft.plan.planted.append(
        Planted("T18", f"statement:{contract['id']}", ("statement:amount:corrected", "statement:received:corrected"),
                {"balance": was["amount"], "due": was["due"]}, {"balance": amount, "due": due}, ("statement:amount",))
    )  # fmt: skip
