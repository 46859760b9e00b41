"""Around the price: proposed add-backs and what is known about each, the debt, claims under an earlier purchase."""

from __future__ import annotations

from datetime import timedelta

from journeyman.worlds.content import Block, Book, Cell, Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.figures import figures_at
from journeyman.worlds.truth.store import Row

DEBT = (("2500", "Term loan"), ("2510", "Revolving facility"), ("2520", "Lease liabilities"), ("1000", "Cash at bank"))


def addbacks_proposed(draft: Draft, event: Row) -> None:
    """Management's list, and a mail on each item that says whether it recurs."""
    setting, rng = draft.setting, draft.rng("addback mails")
    rows = []
    for row in draft.truth.rows("SELECT * FROM addback ORDER BY id"):
        fact = f"addback:{row['id']}:amount"
        draft.fact(fact, "", row["amount"], "currency", currency=setting.currency, rows=(f"addback:{row['id']}",))
        rows.append((row["id"], row["description"], row["journal_id"], Cell(row["amount"], style="int", fact=fact)))
        day = setting.today - timedelta(days=rng.randrange(8, 30))
        is_accepted = bool(row["accepted"]) or row["id"] in draft.notes.get("withdrawn", ())
        verdict = draft.fact(
            f"addback:{row['id']}:reason",
            row["reason"],
            "accepted" if is_accepted else "rejected",
            predicate="reason",
            rows=(f"addback:{row['id']}",),
        )
        sender = rng.choice((draft.roles["controller"], draft.roles["plant"], draft.roles["procurement"]))
        draft.mail(
            event["id"],
            setting.instant(day.isoformat(), rng),
            sender,
            [draft.roles["fpa"], draft.roles["cfo"]],
            f"Background on {row['id']}",
            f'Hello,\n\non "{row["description"]}" ({row["journal_id"]}) you asked'
            f" for the background: {verdict}. The papers are with me if the auditors ask.\n\n{sender['name']}\n",
        )
    sheet = sheet_of(
        "Proposed",
        ("No", "Description", "Journal", f"Amount {setting.currency}"),
        rows,
        total=(3,),
        title="Adjustments to EBITDA proposed by management, last twelve months",
        widths=(8, 60, 24, 18),
        note="An item is accepted when it does not recur and is evidenced. Auditors have not reviewed this list.",
    )
    path = f"deals/{setting.file_name('proposed adjustments')}.xlsx"
    draft.document(
        path,
        "addbacks",
        Book((sheet,), "Proposed adjustments"),
        event["id"],
        day=event["date"],
        author=draft.roles["fpa"]["name"],
        subject="deal:D1",
    )


def debt_stated(draft: Draft, event: Row) -> None:
    """Debt and cash of the group at the last close."""
    setting = draft.setting
    until = setting.label(setting.months[-1])
    balance = figures_at(draft, event["date"]).group_balance(until)
    rows = [("Item", setting.currency)]
    for code, name in DEBT:
        amount = abs(balance[code])
        rows.append(
            (
                name,
                draft.fact(
                    f"debt:{code}",
                    setting.number(amount),
                    amount,
                    "currency",
                    as_of=until,
                    currency=setting.currency,
                    known=event["date"],
                    predicate=name,
                ),
            )
        )
    facts = [
        {
            "id": f"DB{code}",
            "name": name,
            "amount": abs(balance[code]),
            "currency": setting.currency,
            "rate": None,
            "due": None,
            "as_of": until,
        }
        for code, name in DEBT
    ]
    draft.truth.add("debt", facts, event=event["id"], at=event["date"])
    blocks: list[Block] = [
        Heading("Debt overview", 0),
        Paragraph(f"{setting.company}, consolidated, at the end of {until}. Foreign amounts at closing rates."),
        Table(tuple(rows), widths=(4, 2)),
        Paragraph(
            "The term loan and the revolving facility are drawn under the Senior Facilities Agreement. Net debt is"
            " the sum of loans and leases less cash."
        ),
        Paragraph("Pension obligations do not exist. Deferred income is shown within working capital."),
    ]
    path = f"finance/{setting.file_name('debt overview')}.pdf"
    draft.document(
        path,
        "debt_overview",
        Prose(tuple(blocks), "Debt overview", footer=setting.layout["footer"]),
        event["id"],
        day=event["date"],
        author=draft.roles["treasurer"]["name"],
        as_of=until,
    )


def claims_listed(draft: Draft, event: Row) -> None:
    """Claims that a buyer of a former subsidiary raises; the limits are those of the term sheet."""
    rng, setting = draft.rng("claims"), draft.setting
    threshold = draft.notes["terms"]["agreed"]["de_minimis"]
    rows, lines = [], []
    subjects = (
        "stock that could not be sold",
        "a customer's credit note",
        "back taxes of a branch",
        "a defect of a roof",
        "holiday pay",
        "a licence that had lapsed",
        "a lost shipment",
        "an unpaid broker",
        "damaged tooling",
    )
    for number, subject in enumerate(rng.sample(subjects, 7), start=1):
        currency = rng.choice((setting.currency, setting.currency, setting.foreign[0]))
        amount = max(500, round(threshold * rng.choice((0.4, 0.7, 1.6, 3.2, 6.5)), -2))
        row = {
            "id": f"CL{number:02d}",
            "description": subject,
            "amount": int(amount),
            "currency": currency,
            "date": event["date"],
            "warranty": rng.choice(("7.2", "7.3", "7.4")),
        }
        fact = f"claim:{row['id']}:amount"
        draft.fact(fact, "", row["amount"], "currency", currency=currency, rows=(f"claim:{row['id']}",))
        rows.append(row)
        lines.append((row["id"], subject, row["warranty"], currency, Cell(row["amount"], style="int", fact=fact)))
    draft.truth.add("claim", rows, event=event["id"], at=event["date"])
    if "T3" in draft.notes.get("traps", ()):
        month = setting.label(setting.months[-1])
        draft.plan.planted += [
            Planted("T3", f"claim:{row['id']}", (f"claim:{row['id']}:amount",
                    f"fx:{row['currency']}/{setting.currency}:{month}:close"), {"currency": setting.currency},
                    {"currency": row["currency"]})
            for row in rows
            if row["currency"] != setting.currency
        ]  # fmt: skip
    sheet = sheet_of(
        "Claims",
        ("No", "Subject", "Warranty", "Currency", "Amount"),
        lines,
        title="Claims notified",
        widths=(8, 40, 12, 10, 16),
        note="Foreign amounts count at the closing rate of the last closed month.",
    )
    path = f"legal/{setting.file_name('claims notified')}.xlsx"
    draft.document(
        path, "claims", Book((sheet,), "Claims"), event["id"], day=event["date"], author=draft.roles["counsel"]["name"]
    )
