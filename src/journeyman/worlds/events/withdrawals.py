"""What was said to be released at a closing and then is not: a correction that stands only in a later mail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from journeyman.worlds.content import Mail
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted

WORDS = "were released by mistake; they are held in escrow again until we say otherwise"


def withdraw_release(draft: Draft, rows: Sequence[Mapping[str, Any]], mails: Mapping[str, Mail]) -> None:
    """In worlds with trap T18 one released document goes back into escrow, at least a day after its mail.

    Args:
        rows: of the checklist.
        mails: id of an item -> mail that stated its status.
    """
    rng, today = draft.rng("release withdrawn"), draft.setting.today
    sites = [row for row in rows if row["status"] == "released" and mails[row["id"]].sent.date() < today]
    if "T18" not in draft.notes.get("traps", ()) or not sites:
        return
    row = rng.choice(sites)
    first = mails[row["id"]]
    day = first.sent.date() + timedelta(days=rng.randrange(1, max(2, min(6, (today - first.sent.date()).days + 1))))
    event = draft.event("release withdrawn", day, f"Signature pages of {row['item']} back in escrow", item=row["id"])
    fact = f"checklist:{row['id']}:withdrawn"
    stated = draft.fact(
        fact,
        WORDS,
        "signed",
        subject="checklist",
        predicate=f"{row['item']} withdrawn",
        known=_iso(day),
        supersedes=f"checklist:{row['id']}",
        rows=(f"checklist:{row['id']}",),
    )
    draft.truth.recode("checklist", row["id"], "status", "signed")
    draft.mail(
        event,
        draft.setting.instant(_iso(day), rng),
        first.sender,
        [draft.roles["counsel"], draft.roles["gc"]],
        f"Re: {first.subject}",
        f'Dear all,\n\na correction: the signature pages of "{row["item"]}" {stated}.\n\n{row["owner"]}\n',
        reply_to=first,
    )
    draft.plan.planted.append(
        Planted("T18", f"checklist:{row['id']}", (fact,), {"status": "released"}, {"status": "signed"},
                (f"checklist:{row['id']}",))
    )  # fmt: skip


def _iso(day: date) -> str:
    return day.isoformat()
