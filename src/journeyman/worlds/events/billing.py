"""Invoice runs: a register of all invoices, single invoices as PDF, the list of subscriptions."""

from __future__ import annotations

from journeyman.worlds.content import Book, Cell, Delimited, Heading, Paragraph, Prose, Table
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.truth.store import Row

SAMPLES_FROM_LAST_RUNS = 6


def invoice_run(draft: Draft, event: Row) -> None:
    """The last run of a fiscal year writes the register of that year; late runs send single invoices."""
    setting, month = draft.setting, event["date"][:7]
    known = [setting.label(m) for m in setting.months]
    number = known.index(month)
    if number % 12 == 11 or number == len(known) - 1:
        first = known[number - number % 12]
        _register(draft, event, first, month, setting.year_of(setting.months[number]))
    if number == len(known) - 1:
        _subscriptions(draft, event)
    if number >= len(known) - SAMPLES_FROM_LAST_RUNS:
        _invoice(draft, event, month)


def _register(draft: Draft, event: Row, first: str, last: str, year: int) -> None:
    rows = draft.truth.rows(
        "SELECT i.*, c.name, c.segment FROM invoice i JOIN customer c ON c.id = i.customer_id"
        " WHERE substr(i.date, 1, 7) BETWEEN :first AND :last ORDER BY i.date, i.id",
        first=first,
        last=last,
    )
    head = ("invoice_no", "customer_id", "customer", "segment", "line", "date", "net", "tax", "gross", "currency")
    lines = []
    for row in rows:
        net = draft.fact(
            f"invoice:{row['id']}:net",
            str(row["net"]),
            row["net"],
            "currency",
            currency=row["currency"],
            as_of=row["date"],
            known=row["date"],
            rows=(f"invoice:{row['id']}",),
        )
        texts = (str(row[key]) for key in ("id", "customer_id", "name", "segment", "line", "date"))
        lines.append((*texts, net, str(row["tax"]), str(row["gross"]), row["currency"]))
    path = f"commercial/{draft.setting.file_name('invoice register', f'FY{year}')}.csv"
    draft.document(
        path, "invoice_register", Delimited((head, *lines)), event["id"], day=event["date"], subject=f"FY{year}"
    )


def _subscriptions(draft: Draft, event: Row) -> None:
    """All spans of equal fees; a customer whose last span has an end has left or changed."""
    rows = []
    for row in draft.truth.rows(
        "SELECT s.*, c.name FROM subscription s JOIN customer c ON c.id = s.customer_id"
        " ORDER BY s.customer_id, s.start_month"
    ):
        fact = f"subscription:{row['id']}:monthly"
        draft.fact(
            fact,
            "",
            row["monthly"],
            "currency",
            subject=f"customer:{row['customer_id']}",
            predicate="monthly",
            currency=draft.setting.currency,
            rows=(f"subscription:{row['id']}",),
        )
        fee = Cell(row["monthly"], style="int", fact=fact)
        rows.append(
            (row["id"], row["customer_id"], row["name"], row["line"], row["start_month"], row["end_month"], fee)
        )
    head = ("Span", "Customer", "Name", "Line", "From", "Until (exclusive)", f"Monthly fee {draft.setting.currency}")
    path = f"commercial/{draft.setting.file_name('subscriptions')}.xlsx"
    sheet = sheet_of("Subscriptions", head, rows, widths=(10, 12, 36, 28, 10, 16, 20))
    draft.document(
        path,
        "subscriptions",
        Book((sheet,), "Subscriptions"),
        event["id"],
        day=event["date"],
        author=draft.roles["sales"]["name"],
    )


def _invoice(draft: Draft, event: Row, month: str) -> None:
    setting = draft.setting
    row = draft.truth.rows(
        "SELECT i.*, c.name FROM invoice i JOIN customer c ON c.id = i.customer_id WHERE substr(i.date, 1, 7) = :m"
        " ORDER BY i.net DESC, i.id LIMIT 1",
        m=month,
    )[0]
    lines = [
        ("Description", "Net", "Tax", "Gross"),
        (
            f"{row['line']}, {month}",
            setting.number(row["net"]),
            setting.number(row["tax"]),
            setting.number(row["gross"]),
        ),
    ]
    stated = draft.fact(
        f"invoice:{row['id']}:gross",
        setting.money(row["gross"]),
        row["gross"],
        "currency",
        currency=row["currency"],
        as_of=row["date"],
        known=row["date"],
        rows=(f"invoice:{row['id']}",),
    )
    blocks = (
        Heading(f"Invoice {row['id']}", 0),
        Paragraph(f"{setting.company}, {setting.city}"),
        Paragraph(f"To: {row['name']}, customer number {row['customer_id']}"),
        Paragraph(f"Date of issue: {setting.day(row['date'])}. Payable within 30 days without deduction."),
        Table(tuple(lines), widths=(4, 1.4, 1.4, 1.4)),
        Paragraph(f"Amount due: {stated}"),
        Paragraph("Please quote the invoice number with your payment. Ownership passes on payment in full.", "small"),
    )
    path = f"commercial/invoices/{setting.file_name('invoice', row['id'])}.pdf"
    draft.document(
        path,
        "invoice",
        Prose(blocks, f"Invoice {row['id']}", footer=setting.layout["footer"]),
        event["id"],
        day=row["date"],
        subject=f"invoice:{row['id']}",
    )
    customer = "accounts@" + "".join(c for c in row["name"].lower() if c.isalnum())[:18] + ".example"
    draft.mail(
        event["id"],
        setting.instant(row["date"], draft.rng(f"mail {row['id']}")),
        draft.roles["controller"],
        [customer],
        f"Invoice {row['id']}",
        f"Good morning,\n\nplease find attached invoice {row['id']} for {row['line'].lower()}. It is payable within 30"
        f" days.\n\nKind regards\n{draft.roles['controller']['name']}\n{draft.roles['controller']['title']}\n",
        attachments=(path,),
    )
