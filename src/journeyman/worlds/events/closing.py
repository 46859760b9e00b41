"""Periods closed: management accounts of late quarters, trial balances at year ends and today, a ledger extract."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from journeyman.worlds.content import Book, Cell, Delimited, Sheet
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.statements import COSTS, ITEMS, income_of
from journeyman.worlds.events.tables import sheet_of
from journeyman.worlds.simulate.figures import figures_at
from journeyman.worlds.truth.store import Row

LATE_QUARTERS = 6
ENTITY_SHEETS = {"G": "Parent", "S1": "Subsidiary1", "S2": "Subsidiary2"}


def quarter_closed(draft: Draft, event: Row) -> None:
    """Management accounts of the last quarters, trial balances when a fiscal year or the last half year ends."""
    setting, payload = draft.setting, event["payload"]
    since_last = setting.months[-1] - _month(payload["months"][-1])
    if since_last < 3 * LATE_QUARTERS:
        _management_accounts(draft, event)
    if payload["number"] == 4 or since_last == 0:
        _trial_balances(draft, event)
    if since_last == 0:
        _extract(draft, event)
    if since_last < 12:
        _chatter(draft, event)
        controller, cfo = draft.roles["controller"], draft.roles["cfo"]
        when = setting.instant(event["date"], draft.rng(f"close {payload['period']}"))
        income = income_of(draft, payload["months"], event["date"])
        revenue = draft.fact(
            f"income:group:{payload['period']}:revenue",
            setting.money(income.revenue),
            income.revenue,
            "currency",
            currency=setting.currency,
            as_of=event["date"],
            known=event["date"],
        )
        draft.mail(
            event["id"],
            when,
            controller,
            [cfo, draft.roles["fpa"]],
            f"Accounts {payload['period']}",
            f"{cfo['name'].split()[0]},\n\nthe books for {payload['period']} are closed. Group revenue is {revenue}."
            " The management accounts are in the finance folder. Please send questions before the board pack goes"
            f" out.\n\n{controller['name']}\n",
        )


def _chatter(draft: Draft, event: Row) -> None:
    setting, period = draft.setting, event["payload"]["period"]
    rng = draft.rng(f"close chat {period}")
    controller, fpa = draft.roles["controller"], draft.roles["fpa"]
    when = setting.instant(event["date"], rng)
    first = draft.say(event["id"], when, "finance", controller, f"{period} is closed, management accounts are filed.")
    draft.say(
        event["id"],
        when + timedelta(minutes=rng.randrange(4, 50)),
        "finance",
        fpa,
        rng.choice(
            (
                "Thanks. I will load it into the forecast.",
                "Got it, starting the variance notes.",
                "Thank you. Any late journals I should know about?",
            )
        ),
        first,
    )


def _month(label: str) -> int:
    year, month = label.split("-")
    return 12 * int(year) + int(month) - 1


def _management_accounts(draft: Draft, event: Row) -> None:
    setting, payload = draft.setting, event["payload"]
    sheets = [_consolidated(draft, event)]
    for entity, name in ENTITY_SHEETS.items():
        sheets.append(_entity_sheet(draft, entity, name, payload["months"], event["date"]))
    path = f"finance/{setting.file_name('management accounts', payload['period'])}.xlsx"
    draft.document(
        path,
        "management_accounts",
        Book(tuple(sheets), f"Management accounts {payload['period']}"),
        event["id"],
        day=event["date"],
        author=draft.roles["controller"]["name"],
        subject=payload["period"],
    )


def _consolidated(draft: Draft, event: Row) -> Sheet:
    """Income statement of the group by month, with formulas for its sums."""
    setting, payload, known = draft.setting, event["payload"], event["date"]
    months: list[str] = payload["months"]
    each = [income_of(draft, [month], known) for month in months]
    cells = {
        (0, 0): Cell(f"{setting.company}: {payload['period']}", style="title"),
        (1, 0): Cell(f"{setting.currency}, whole units; costs are negative", style="note"),
    }
    for column, text in enumerate(("", *months, payload["period"])):
        cells[3, column] = Cell(text, style="head")
    rows = {item: 4 + number for number, item in enumerate(ITEMS)}
    sums = {
        "gross_profit": ("revenue", "cost_of_sales"),
        "ebitda": ("gross_profit", "operating_expenses"),
        "ebit": ("ebitda", "depreciation", "exceptional"),
        "net_income": ("ebit", "interest", "tax"),
    }
    for item, row in rows.items():
        cells[row, 0] = Cell(ITEMS[item], style="bold" if item in sums else "")
        values = [int(getattr(one, item)) * (-1 if item in COSTS else 1) for one in each]
        for column, value in enumerate(values, start=1):
            letter = "ABCDE"[column]
            formula = "=" + "+".join(f"{letter}{rows[part] + 1}" for part in sums[item]) if item in sums else ""
            cells[row, column] = Cell(value, formula, "total" if item in sums else "int")
        fact_id = f"income:group:{payload['period']}:{item}"
        draft.fact(
            fact_id,
            "",
            abs(sum(values)) if item in COSTS else sum(values),
            "currency",
            currency=setting.currency,
            as_of=known,
            known=known,
        )
        cells[row, 4] = Cell(sum(values), f"=SUM(B{row + 1}:D{row + 1})", "total", fact_id)
    return Sheet("Group", cells, (34.0, 15.0, 15.0, 15.0, 16.0))


def _entity_sheet(draft: Draft, entity: str, name: str, months: Sequence[str], known: str) -> Sheet:
    setting = draft.setting
    figures = figures_at(draft, known)
    moved = figures.movements(entity, months)
    names = _account_names(draft)
    codes = [code for code in sorted(moved) if code >= "4000"]
    rows = [(code, names[code], -moved[code]) for code in codes]
    entities = {row["id"]: row for row in draft.notes["entities"]}
    currency = entities[entity]["currency"]
    return sheet_of(
        name,
        ("Account", "Name", f"Amount {currency}"),
        rows,
        title=f"{entities[entity]['name']}",
        styles=("", "", "int"),
        widths=(12, 34, 18),
        total=(2,),
        label="Result",
        note=f"Amounts in {currency}; income positive, costs negative. {setting.company}",
    )


def _account_names(draft: Draft) -> dict[str, str]:
    if "accounts" not in draft.notes:
        draft.notes["accounts"] = {r["id"]: r["name"] for r in draft.truth.rows("SELECT id, name FROM account")}
    found: dict[str, str] = draft.notes["accounts"]
    return found


def _trial_balances(draft: Draft, event: Row) -> None:
    """One workbook per entity: balance of every account at the end of the period."""
    setting, payload = draft.setting, event["payload"]
    until, names = payload["months"][-1], _account_names(draft)
    figures = figures_at(draft, event["date"])
    entities = {row["id"]: row for row in draft.notes["entities"]}
    for entity in ENTITY_SHEETS:
        rows = []
        for code, amount in sorted(figures.balance(entity, until).items()):
            fact_id = f"balance:{entity}:{until}:{code}"
            draft.fact(
                fact_id,
                "",
                amount,
                "currency",
                currency=entities[entity]["currency"],
                as_of=event["date"],
                known=event["date"],
            )
            debit, credit = Cell(max(amount, 0), style="int"), Cell(max(-amount, 0), style="int")
            rows.append((code, names[code], debit, credit, Cell(amount, style="int", fact=fact_id)))
        sheet = sheet_of(
            "TB",
            ("Account", "Name", "Debit", "Credit", "Balance"),
            rows,
            total=(2, 3, 4),
            title=f"Trial balance {entities[entity]['name']} at {until}",
            widths=(12, 34, 18, 18, 18),
            note=f"Amounts in {entities[entity]['currency']}. Balance: debit positive.",
        )
        path = f"finance/{setting.file_name('trial balance', entity, until)}.xlsx"
        draft.document(
            path,
            "trial_balance",
            Book((sheet,), f"Trial balance {entity} {until}"),
            event["id"],
            day=event["date"],
            author=draft.roles["controller"]["name"],
            as_of=until,
            subject=f"{entity}:{until}",
        )


def _extract(draft: Draft, event: Row) -> None:
    """The parent's journal lines of the last twelve months."""
    setting = draft.setting
    first = setting.label(setting.months[-12])
    rows = draft.truth.rows(
        "SELECT l.id, j.date, l.journal_id, l.account_id, a.name, l.text, l.dr, l.cr FROM journal_line l"
        " JOIN journal j ON j.id = l.journal_id JOIN account a ON a.id = l.account_id"
        " WHERE j.entity_id = 'G' AND substr(j.date, 1, 7) >= :first AND l.known_from <= :known"
        " ORDER BY j.date, l.journal_id, l.id",
        first=first,
        known=event["date"],
    )
    head = ("line_id", "date", "journal", "account", "account_name", "text", "debit", "credit")
    lines = [
        (r["id"], r["date"], r["journal_id"], r["account_id"], r["name"], r["text"], str(r["dr"]), str(r["cr"]))
        for r in rows
    ]
    path = f"finance/{setting.file_name('general ledger', 'last twelve months')}.csv"
    draft.document(
        path,
        "general_ledger",
        Delimited((head, *lines)),
        event["id"],
        day=event["date"],
        author=draft.roles["controller"]["name"],
    )
