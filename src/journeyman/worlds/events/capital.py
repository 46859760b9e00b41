"""Who owns the company: capitalisation table, register of shares, resolutions of the board that issued them."""

from __future__ import annotations

from journeyman.worlds.content import Block, Book, Cell, Heading, Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.truth.store import Row

THEMES = (
    "the order book and the forecast for the quarter",
    "the audit plan and the fee of the auditors",
    "safety at work and two incidents without injury",
    "the refinancing of leases",
    "staff turnover",
    "prices of {supply}",
    "competition in {market}",
    "the insurance renewal",
    "progress of the new planning system",
)
"""What boards talk about."""

RIGHTS = (
    ("Order", "Higher seniority is paid first. Series B ranks before Series A, both before common shares."),
    ("Preference", "The amount stated, once, in total for the class."),
    ("Non-participating", "Takes the greater of its preference and what it would get if converted one to one."),
    ("Participating", "Takes its preference and then shares with common as if converted, without a cap."),
    ("Options", "Exercised when the value per share exceeds the strike; the strike is paid in cash at exit."),
)


def cap_table_confirmed(draft: Draft, event: Row) -> None:
    """The capitalisation as a workbook: holdings, options, and what each preferred class is owed first."""
    rows = []
    for row in draft.notes["securities"]:
        fact = f"security:{row['id']}:shares"
        draft.fact(
            fact,
            "",
            row["shares"],
            "count",
            subject=f"holder:{row['holder']}",
            predicate="shares",
            rows=(f"security:{row['id']}",),
            known=event["date"],
            as_of=event["date"],
        )
        participating = {None: None, 0: "no", 1: "yes"}[row["participating"]]
        rows.append(
            (
                row["holder"],
                row["share_class"],
                Cell(row["shares"], style="int", fact=fact),
                row["strike"],
                row["preference"],
                participating,
                row["seniority"],
            )
        )
    head = (
        "Holder",
        "Class",
        "Shares",
        f"Strike ({draft.setting.currency})",
        f"Preference ({draft.setting.currency})",
        "Participating",
        "Seniority (1 is paid last of the preferred)",
    )
    sheet = sheet_of(
        "CapTable",
        head,
        rows,
        title=f"{draft.setting.company}: capitalisation",
        total=(2,),
        styles=("", "", "int", "int", "int"),
        widths=(30, 12, 14, 14, 18, 14, 18),
    )
    notes = sheet_of("Rights", ("Right", "Description"), RIGHTS, title="Rights of classes", widths=(20, 90))
    path = f"deals/{draft.setting.file_name('cap table')}.xlsx"
    draft.document(
        path,
        "cap_table",
        Book((sheet, notes), "Cap table"),
        event["id"],
        day=event["date"],
        author=draft.roles["secretary"]["name"],
        subject="entity:G",
    )
    _register(draft, event)


def _register(draft: Draft, event: Row) -> None:
    rows = []
    for entry in draft.notes["register"]:
        fact = f"register:{entry['id']}:shares"
        draft.fact(
            fact,
            "",
            entry["shares"],
            "count",
            subject=f"holder:{entry['holder']}",
            predicate="shares entered",
            rows=(f"share_entry:{entry['id']}",),
            as_of=entry["date"],
            known=entry["date"],
        )
        rows.append(
            (
                entry["id"],
                entry["date"],
                entry["holder"],
                entry["share_class"],
                Cell(entry["shares"], style="int", fact=fact),
                entry["kind"],
                entry["reference"],
            )
        )
    sheet = sheet_of(
        "Register",
        ("Entry", "Date", "Holder", "Class", "Shares", "Kind", "Resolution"),
        rows,
        title="Register of shares",
        widths=(10, 12, 30, 12, 14, 10, 14),
        total=(4,),
    )
    path = f"legal/corporate/{draft.setting.file_name('share register')}.xlsx"
    draft.document(
        path,
        "share_register",
        Book((sheet,), "Register of shares"),
        event["id"],
        day=event["date"],
        author=draft.roles["secretary"]["name"],
        subject="entity:G",
    )


def shares_issued(draft: Draft, event: Row) -> None:
    """Minutes of the board meeting that resolved the issue; some err, which is recorded as a contradiction."""
    entry = draft.truth.one("SELECT * FROM share_entry WHERE id = :id", id=event["payload"]["entry"])
    rng = draft.rng(f"minutes {entry['id']}")
    directors = [draft.roles[role] for role in ("ceo", "cfo", "gc")]
    draw = rng.random()
    shares, holder = entry["shares"], entry["holder"]
    kind = ""
    if draw < 0.18:
        shares, kind = shares + rng.choice((-5000, 5000, 10_000)), "shares"
    elif draw < 0.3:
        others = sorted({one["holder"] for one in draft.notes["register"]} - {holder})
        holder, kind = rng.choice(others), "holder"
    resolved = {
        "id": f"{entry['reference']}",
        "meeting_id": f"BM-{entry['id']}",
        "no": 3,
        "kind": "issue",
        "person": holder,
        "shares": shares,
        "text": entry["share_class"],
    }
    draft.truth.add("resolution", resolved, event=event["id"], at=event["date"])
    draft.truth.add(
        "meeting",
        {
            "id": f"BM-{entry['id']}",
            "kind": "board",
            "date": event["date"],
            "title": "Board meeting",
            "attendees": [one["id"] for one in directors],
        },
        event=event["id"],
        at=event["date"],
    )
    if kind:
        draft.truth.add(
            "defect",
            {
                "id": f"DF-{entry['id']}",
                "document": "minutes",
                "kind": f"register {kind}",
                "term": entry["id"],
                "place": entry["reference"],
            },
            event=event["id"],
            at=event["date"],
        )
    _minutes(draft, event, entry, holder, shares)


def _minutes(draft: Draft, event: Row, entry: Row, holder: str, shares: int) -> None:
    setting, rng = draft.setting, draft.rng(f"minutes text {entry['id']}")
    facts = {
        "subject": f"resolution:{entry['reference']}",
        "rows": (f"resolution:{entry['reference']}",),
        "as_of": event["date"],
        "known": event["date"],
    }
    count = draft.fact(
        f"resolution:{entry['reference']}:shares", setting.number(shares), shares, "count", predicate="shares", **facts
    )
    who = draft.fact(f"resolution:{entry['reference']}:holder", holder, holder, "text", predicate="holder", **facts)
    present = [draft.roles[role] for role in ("ceo", "cfo", "gc", "secretary")]
    words = {"supply": rng.choice(setting.trade["supplies"]), "market": setting.trade["market"]}
    first, second = (theme.format(**words) for theme in rng.sample(THEMES, 2))
    blocks: list[Block] = [
        Heading(f"Minutes of a meeting of the board of {setting.company}", 0),
        Paragraph(f"held on {setting.day(event['date'])} at {setting.city}"),
        Paragraph("Present: " + "; ".join(f"{one['name']} ({one['title']})" for one in present)),
        Heading("1. Opening"),
        Paragraph(
            f"{present[0]['name']} took the chair, noted that due notice had been given and that a quorum was"
            " present. The minutes of the last meeting were approved without change."
        ),
        Heading("2. Report of the management"),
        Paragraph(
            f"The board discussed {first}. Management explained the figures and answered questions. The board took"
            " note and asked for a follow-up in the next meeting."
        ),
        Paragraph(f"It then considered {second}. No decision was needed."),
        Heading("3. Issue of shares"),
        Paragraph(
            f"Resolution {entry['reference']}: IT WAS RESOLVED to allot and issue {count} {entry['share_class']}"
            f" shares to {who}, fully paid in cash, and to instruct the secretary to enter them in the register."
        ),
        Heading("4. Close"),
        Paragraph("There being no other business the meeting was closed."),
        Paragraph(f"Signed: {present[0]['name']}, chair; {present[3]['name']}, secretary"),
    ]
    path = f"legal/corporate/{setting.file_name('board minutes', event['date'], entry['reference'])}.pdf"
    draft.document(
        path,
        "minutes",
        Prose(tuple(blocks), "Board minutes", footer=setting.layout["footer"]),
        event["id"],
        day=event["date"],
        author=present[3]["name"],
        subject=f"resolution:{entry['reference']}",
    )
    draft.meet(
        event["id"],
        setting.instant(event["date"], rng),
        90,
        "Board meeting",
        f"Agenda: opening; report of the management; issue of shares ({entry['reference']}); close.",
        present[3],
        present,
        setting.city,
    )
