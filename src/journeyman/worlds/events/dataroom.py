"""The data room: index, factbook, questions, closing checklist, disclosure schedule, lawyers' mails."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from journeyman.worlds.content import Block, Book, Deck, Heading, Mail, Paragraph, Prose, Slide, SlideChart, Table
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.contracts import contract_path
from journeyman.worlds.events.diligence import later_questions
from journeyman.worlds.events.statements import income_of
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.events.withdrawals import withdraw_release
from journeyman.worlds.simulate.figures import labels
from journeyman.worlds.truth.store import Row

CHECKLIST = (
    "Share purchase agreement", "Disclosure letter", "Board resolution of the seller", "Board resolution of the buyer",
    "Escrow agreement", "Release of security", "Resignation of directors", "Power of attorney of the buyer",
    "Tax clearance", "Competition clearance", "Pay-off letter of the lender", "Transitional services agreement",
    "Updated register of shares", "Evidence of insurance",
)  # fmt: skip


ASKED = ("term", "payment_days", "liability_cap", "renewal_notice", "governing_law")
UNANSWERED = (
    "What is the carbon footprint of {line} per {unit}?",
    "What is the pension deficit of the closed scheme?",
    "How many patents are licensed to third parties?",
    "What rent does the company pay for its former head office?",
    "What is the notice period of the auditors?",
    "What share of {supply} is bought under hedges?",
)


def file_room_opened(draft: Draft, event: Row) -> None:
    """Index of contracts, disclosure schedule with gaps, checklist, questions, and the mails of the lawyers."""
    _index(draft, event)
    _disclosure(draft, event)
    _checklist(draft, event)
    _questions(draft, event)
    _privileged(draft, event)


def _index(draft: Draft, event: Row) -> None:
    rows = [
        (c["id"], c["title"], c["counterparty"], c["date"], contract_path(draft, c))
        for c in sorted(draft.notes["contracts"].values(), key=lambda c: str(c["id"]))
    ]
    sheet = sheet_of(
        "Index",
        ("Number", "Title", "Counterparty", "Date", "File"),
        rows,
        title="Data room index: contracts",
        widths=(10, 30, 36, 12, 60),
    )
    path = f"legal/{draft.setting.file_name('data room index')}.xlsx"
    draft.document(
        path,
        "room_index",
        Book((sheet,), "Data room index"),
        event["id"],
        day=event["date"],
        author=draft.roles["counsel"]["name"],
    )


def _consent_contracts(draft: Draft, today: str) -> list[Row]:
    return draft.truth.as_of(today).rows(
        "SELECT k.id, k.counterparty, c.id AS clause, json_extract(c.params_json, '$.value') AS value,"
        " json_extract(c.params_json, '$.days') AS days FROM clause_at c JOIN contract_at k ON k.id = c.contract_id"
        " WHERE c.type = 'change_of_control' AND value IN ('consent', 'termination') ORDER BY k.id"
    )


def _disclosure(draft: Draft, event: Row) -> None:
    """Lists the contracts with change of control provisions; some that should be there are not."""
    rng, setting = draft.rng("disclosure"), draft.setting
    due = _consent_contracts(draft, event["date"])
    gaps = {row["id"] for row in rng.sample(due, min(len(due) - 1, rng.randrange(2, 5)))}
    rows = [
        {
            "id": f"DS-{row['id']}",
            "schedule": "change of control",
            "item": row["counterparty"],
            "contract_id": row["id"],
            "listed": int(row["id"] not in gaps),
        }
        for row in due
    ]
    draft.truth.add("disclosure", rows, event=event["id"], at=event["date"])
    table = [("Contract", "Counterparty", "Provision")]
    for row in due:
        if row["id"] not in gaps:
            shown = draft.fact(
                f"disclosure:{row['id']}", row["id"], row["id"], subject="disclosure", predicate="listed"
            )
            table.append((shown, row["counterparty"], row["value"]))
    blocks: list[Block] = [
        Heading("Disclosure Schedule, draft", 0),
        Paragraph(
            "Disclosed against the warranty on change of control (clause 7.3 of the draft share purchase agreement):"
            " every contract under which a change of control requires consent or gives a right to terminate."
        ),
        Table(tuple(table), widths=(1.2, 4, 2)),
        Paragraph("This draft has not been checked against the data room."),
    ]
    path = f"legal/{setting.file_name('disclosure schedule draft')}.docx"
    draft.document(
        path,
        "disclosure_schedule",
        Prose(tuple(blocks), "Disclosure Schedule", header="Draft"),
        event["id"],
        day=event["date"],
        author=draft.roles["counsel"]["name"],
    )


def _checklist(draft: Draft, event: Row) -> None:
    """Items with no status; the status of each follows from mails: signed and released, signed only, or open."""
    rng, setting = draft.rng("checklist"), draft.setting
    rows = []
    mails: dict[str, Mail] = {}
    owners = [draft.roles[role] for role in ("outside_counsel", "counsel", "banker", "lender")]
    for number, item in enumerate(CHECKLIST, start=1):
        owner, status = rng.choice(owners), rng.choice(("released", "signed", "open"))
        rows.append(
            {
                "id": f"CK{number:02d}",
                "item": item,
                "owner": owner["name"],
                "status": status,
                "due": (setting.today + timedelta(days=20)).isoformat(),
            }
        )
        if status != "open":
            day = (setting.today - timedelta(days=rng.randrange(1, 20))).isoformat()
            words = {
                "released": "is signed by all parties, and the signature pages are released",
                "signed": "is signed, but our signature pages are held in escrow until we say otherwise",
            }[status]
            stated = draft.fact(f"checklist:CK{number:02d}", words, status, subject="checklist", predicate=item)
            mails[f"CK{number:02d}"] = draft.mail(
                event["id"],
                setting.instant(day, rng),
                owner,
                [draft.roles["counsel"], draft.roles["gc"]],
                f"Closing: {item}",
                f'Dear all,\n\nthe document "{item}" {stated}.\n\n{owner["name"]}\n',
            )
    draft.truth.add("checklist", rows, event=event["id"], at=event["date"])
    withdraw_release(draft, rows, mails)
    lines = [(row["id"], row["item"], row["owner"], row["due"], "") for row in rows]
    sheet = sheet_of(
        "Checklist",
        ("No", "Item", "Owner", "Due", "Status"),
        lines,
        title="Closing checklist",
        widths=(8, 36, 26, 12, 16),
        note="Status: released, signed (held in escrow), or open.",
    )
    path = f"deals/{setting.file_name('closing checklist')}.xlsx"
    draft.document(
        path,
        "checklist",
        Book((sheet,), "Closing checklist"),
        event["id"],
        day=event["date"],
        author=draft.roles["counsel"]["name"],
    )


def _questions(draft: Draft, event: Row) -> None:
    """Questions of bidders: twenty-five, then the later rounds. ``answer`` names the fact, or is empty."""
    rng, setting = draft.rng("questions"), draft.setting
    rows: list[tuple[str, str]] = []
    contracts = sorted(draft.notes["contracts"].values(), key=lambda c: str(c["id"]))
    for contract in rng.sample(contracts, 9):
        clause = rng.choice([c for c in contract["clauses"] if c["type"] in ASKED])
        label = clause["type"].replace("_", " ")
        text = f"What does contract {contract['id']} with {contract['counterparty']} provide on {label}?"
        amended = contract.get("amendment", {}).get("new", clause)
        rows.append((text, f"clause:{(amended if amended['no'] == clause['no'] else clause)['id']}"))
    for year in setting.years:
        for item, label in (("revenue", "consolidated revenue"), ("ebitda", "EBITDA before exceptional items")):
            fact = f"income:group:FY{year}:{item}"
            restated = f"{fact}:restated"
            rows.append(
                (f"What was {label} in fiscal year {year}?", restated if restated in draft.plan.facts else fact)
            )
    for one in rng.sample(draft.notes["securities"], 3):
        text = f"How many shares does {one['holder']} hold in class {one['share_class']}?"
        rows.append((text, f"security:{one['id']}:shares"))
    for name in rng.sample(setting.trade["segments"], 2):
        rows.append((f"What is the population of the stratum {name}?", f"stratum:{name}:population"))
    words = {"line": setting.trade["lines"][0], "unit": setting.trade["unit"], "supply": setting.trade["supplies"][0]}
    rows += [(text.format(**words), "") for text in rng.sample(UNANSWERED, 25 - len(rows))]
    rng.shuffle(rows)
    rows += later_questions(draft, {text for text, _ in rows}, ASKED)
    known = [
        {"id": f"QA{n:02d}", "no": n, "text": text, "answer": fact, "source_path": "", "answerable": int(bool(fact))}
        for n, (text, fact) in enumerate(rows, start=1)
    ]
    draft.truth.add("question", known, event=event["id"], at=event["date"])
    lines = [(n, text, "", "") for n, (text, _) in enumerate(rows, start=1)]
    note = 'Where the record holds no answer: "not in the record" and whom to ask.'
    sheet = sheet_of(
        "QA",
        ("No", "Question", "Answer", "Source"),
        lines,
        title="Questions of bidders",
        widths=(6, 80, 30, 40),
        note=note,
    )
    path = f"deals/{setting.file_name('question log')}.xlsx"
    draft.document(
        path,
        "question_log",
        Book((sheet,), "Questions"),
        event["id"],
        day=event["date"],
        author=draft.roles["associate"]["name"],
    )


def _privileged(draft: Draft, event: Row) -> None:
    rng, setting = draft.rng("privilege"), draft.setting
    partner, gc, counsel = (draft.roles[role] for role in ("outside_counsel", "gc", "counsel"))
    rows: list[dict[str, Any]] = []
    for round_no in range(3):
        for known in pack("privilege")["mail"]:
            subject, reason = known["subject"], known["reason"]
            day = (setting.today - timedelta(days=rng.randrange(15, 300))).isoformat()
            reference = f"{setting.file_name(subject)[:6]}-{round_no + 1}{rng.randrange(10, 99)}"
            title = draft.fact(
                f"privilege:{round_no}:{subject}", f"{subject} ({reference})", reason, subject="privilege"
            )
            mail = draft.mail(
                event["id"],
                setting.instant(day, rng),
                partner,
                [gc, counsel],
                title,
                f"Dear {gc['name']},\n\n{known['text']}\n\n{partner['name']}\n{partner['entity_id']}\n",
            )
            rows.append(
                {
                    "id": f"PV{len(rows) + 1:02d}",
                    "message_id": mail.message_id,
                    "status": "privileged" if known["privileged"] else "not privileged",
                    "reason": reason,
                }
            )
    draft.truth.add("privilege", rows, event=event["id"], at=event["date"])


def factbook_drafted(draft: Draft, event: Row) -> None:
    """Slides of the information memorandum: revenue and EBITDA by year with a native chart, customers, people."""
    setting, known = draft.setting, event["date"]
    years = [f"FY{year}" for year in setting.years]
    incomes = [income_of(draft, labels(draft, setting.year_months(year)), known) for year in setting.years]
    revenue = tuple(round(one.revenue / 1e6, 1) for one in incomes)
    ebitda = tuple(round(one.ebitda / 1e6, 1) for one in incomes)
    rows = [(f"{setting.currency} million", *years)]
    for name, values in (("revenue", revenue), ("ebitda", ebitda)):
        cells = []
        for year, value, income in zip(years, values, incomes, strict=True):
            exact = int(getattr(income, name))
            cells.append(
                draft.fact(
                    f"factbook:{name}:{year}",
                    setting.number(value, 1),
                    exact,
                    "currency",
                    currency=setting.currency,
                    as_of=year,
                    known=known,
                )
            )
        rows.append((name.upper() if name == "ebitda" else "Revenue", *cells))
    segments = [(s, str(sum(c["segment"] == s for c in draft.notes["customers"]))) for s in setting.trade["segments"]]
    slides = (
        Slide(f"{draft.notes['deal']['name']}: factbook", (setting.company, "Draft for the information memorandum")),
        Slide(
            "Financial summary",
            (),
            Table(tuple(rows)),
            SlideChart(
                "column",
                f"Revenue and EBITDA, {setting.currency} million",
                tuple(years),
                (("Revenue", revenue), ("EBITDA", ebitda)),
            ),
            "Source: annual reports",
        ),
        Slide(
            "Customers",
            ("No customer above ten per cent of revenue",),
            Table((("Segment", "Customers"), *segments)),
            source="Source: customer master data",
        ),
        Slide("Lines of business", tuple(setting.trade["lines"])),
        Slide(
            "To be completed", ("Slide on revenue by line: pending",), notes="Use the native chart style of slide 2."
        ),
    )
    path = f"deals/{setting.file_name('factbook draft')}.pptx"
    draft.document(
        path,
        "factbook",
        Deck(slides, "Factbook"),
        event["id"],
        day=known,
        author=draft.roles["associate"]["name"],
        subject="deal:D1",
    )
