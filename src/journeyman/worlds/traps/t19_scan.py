"""T19: a page that is an image; a mail says what it changes."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.content import Heading, Paragraph, Prose, Scan
from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """A side letter, scanned, grants a rebate for a contract; its text exists as pixels, its gist in a mail."""
    contract = rng.choice([c for _, c in sorted(draft.notes["contracts"].items()) if c["kind"] == "customer"])
    setting, rebate = draft.setting, rng.choice((1.5, 2.0, 2.5, 3.0))
    day = min(date.fromisoformat(contract["date"]) + timedelta(days=rng.randrange(30, 200)), setting.today)
    event = draft.event("side letter signed", day, f"Side letter to {contract['id']}")
    fact = f"side_letter:{contract['id']}:rebate"
    shown = f"{setting.number(rebate, 1)} per cent"
    stated = draft.fact(
        fact,
        shown,
        rebate,
        "percent",
        subject=f"contract:{contract['id']}",
        predicate="rebate",
        as_of=day.isoformat(),
        known=day.isoformat(),
    )
    lines = (
        f"SIDE LETTER TO {contract['id']}",
        "",
        setting.day(day),
        "",
        f"{setting.company} grants a rebate of",
        stated,
        "on all invoices of a calendar year,",
        "payable in January of the next year.",
        "",
        "Signed for both parties",
    )
    path = f"legal/contracts/{setting.file_name(contract['id'], 'side letter scan')}.pdf"
    blocks = (Heading(f"Side letter to {contract['id']}", 0), Paragraph("Scanned copy on the next page."), Scan(lines))
    draft.document(
        path,
        "scan",
        Prose(blocks, f"Side letter {contract['id']}"),
        event,
        day=day,
        version="signed",
        subject=f"contract:{contract['id']}",
    )
    again = draft.plan.state(draft.plan.facts[fact], shown)
    draft.mail(
        event,
        setting.instant(day.isoformat(), rng),
        draft.roles["sales"],
        [draft.roles["controller"]],
        f"{contract['id']}: scan of the side letter",
        f"Hello,\n\nthe scan is filed with the contract. In short: a"
        f" rebate of {again} on the invoices of a year.\n\n{draft.roles['sales']['name']}\n",
    )
    return [Planted("T19", f"contract:{contract['id']}:rebate", (fact,), {"rebate": 0}, {"rebate": rebate})]


T19 = Operator("T19", "image-only page", "plan", apply)
