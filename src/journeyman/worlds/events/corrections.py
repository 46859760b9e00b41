"""Corrections: accounts and debt restated, offers improved."""

from __future__ import annotations

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table, mark
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.bids import bid_sender
from journeyman.worlds.events.statements import income_of, stated
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.figures import labels
from journeyman.worlds.truth.store import Row


def restatement(draft: Draft, event: Row) -> None:
    """A note on the restatement of a fiscal year, and the mail that announces it."""
    setting, year = draft.setting, event["payload"]["year"]
    months = labels(draft, setting.year_months(year))
    before = draft.truth.value(
        "SELECT MAX(date) FROM event WHERE kind = 'year reported' AND date < :d", d=event["date"]
    )
    rows = [(f"{setting.currency} thousand", "As first reported", "As restated")]
    for item, label in (("revenue", "Revenue"), ("ebitda", "EBITDA before exceptional items")):
        old = setting.number(int(getattr(income_of(draft, months, before), item)) / 1000)
        rows.append((label, old, stated(draft, f"income:group:FY{year}:{item}", item, months, event["date"], "", 1000)))
    blocks: list[Block] = [
        Heading(f"Restatement of FY{year}", 0),
        Paragraph(f"{setting.company}, {setting.day(event['date'])}"),
        Paragraph(
            f"In preparing the current accounts it was found that revenue of FY{year} included deliveries for which"
            " control had not passed by the end of the year. The comparative figures have been restated. The restated"
            f" figures replace those in the annual report FY{year} for all purposes."
        ),
        Table(tuple(rows), caption="Effect of the restatement"),
        Paragraph("Cash flow and covenants at past test dates are not affected to a material extent."),
    ]
    path = f"finance/reports/{setting.file_name('note on restatement', f'FY{year}')}.pdf"
    draft.document(
        path,
        "restatement_note",
        Prose(tuple(blocks), f"Restatement of FY{year}"),
        event["id"],
        day=event["date"],
        author=draft.roles["cfo"]["name"],
        subject=f"FY{year}",
    )
    draft.mail(
        event["id"],
        setting.instant(event["date"], draft.rng("restatement mail")),
        draft.roles["cfo"],
        [draft.roles["controller"], draft.roles["fpa"], draft.roles["treasurer"]],
        f"FY{year} is restated",
        f"All,\n\nthe board has approved the restatement of FY{year}. Please use the figures of the attached note from"
        f" now on, also in models.\n\n{draft.roles['cfo']['name']}\n",
        attachments=(path,),
    )


def leases_restated(draft: Draft, event: Row) -> None:
    """A note that replaces the lease liabilities of the debt overview; booked in a month that is still open, so that no
    accounts change."""
    setting, site = draft.setting, "debt:2520"
    before = draft.truth.one("SELECT * FROM debt WHERE id = 'DB2520'")
    old = int(before["amount"])
    amount = old + 1000 * max(1, round(old * event["payload"]["share"] / 1000))
    row = {**before, "id": "DB2520:restated", "amount": amount, "known_from": event["date"],
           "source_event_id": event["id"]}  # fmt: skip
    draft.truth.close("debt", before["id"], known_to=event["date"])
    draft.truth.add("debt", row, event=event["id"])
    now = draft.fact(
        f"{site}:restated",
        setting.number(amount),
        amount,
        "currency",
        currency=setting.currency,
        as_of=before["as_of"],
        known=event["date"],
        supersedes=site,
        rows=("debt:DB2520:restated",),
    )
    blocks: list[Block] = [
        Heading("Restatement of lease liabilities", 0),
        Paragraph(f"{setting.company}, consolidated, {setting.day(event['date'])}"),
        Paragraph(
            f"The lease of a site had been left out of the lease liabilities at the end of {before['as_of']}. The"
            " amount below replaces the one in the debt overview, also in models. The entry is booked in the current"
            " month. All other lines of the overview stand; it is not issued again. Only covenants of that test date"
            " are still tested on the overview as it was issued, as agreed with the lender."
        ),
        Table(
            (
                (setting.currency, "As first stated", "As restated"),
                (before["name"], mark(site, setting.number(old)), now),
            ),
            widths=(3, 2, 2),
        ),
    ]
    draft.document(
        f"finance/{setting.file_name('note on lease liabilities')}.pdf",
        "debt_note",
        Prose(tuple(blocks), "Restatement of lease liabilities", footer=setting.layout["footer"]),
        event["id"],
        day=event["date"],
        author=draft.roles["treasurer"]["name"],
        as_of=before["as_of"],
    )
    draft.plan.planted.append(Planted("T2", site, (f"{site}:restated",), {"leases": old}, {"leases": amount}, (site,)))


def bid_improved(draft: Draft, event: Row) -> None:
    """A bidder's signatory improves an offer by mail; there is no new letter."""
    bid = draft.truth.one("SELECT * FROM bid WHERE id = :id", id=event["payload"]["bid"])
    price = draft.fact(
        f"bid:{bid['id']}:price",
        draft.setting.money(bid["price"]),
        bid["price"],
        "currency",
        subject=f"bid:{bid['bidder']}",
        predicate="price",
        currency=bid["currency"],
        as_of=event["date"],
        known=event["date"],
        supersedes=f"bid:{bid['supersedes']}:price",
        rows=(f"bid:{bid['id']}",),
    )
    draft.mail(
        event["id"],
        draft.setting.instant(event["date"], draft.rng(f"improved {bid['id']}")),
        bid_sender(bid),
        [draft.roles["banker"]],
        f"{draft.notes['deal']['name']}: improvement of our offer",
        f"Dear {draft.roles['banker']['name']},\n\nfollowing our call we improve our offer to {price}. All other"
        f" terms of our letter stand.\n\nAuthorised signatory\n{bid['bidder']}\n",
    )
