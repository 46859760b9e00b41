"""Records in bulk as files: vouchers and reviews as plain texts, balances of every month end as csv."""

from __future__ import annotations

from journeyman.worlds.content import Delimited, Text
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.figures import figures_at
from journeyman.worlds.truth.store import Row

UNSIGNED = "nobody"
ORDERED = ("framework order", "single order", "order by phone", "standing order")
REMARKS = (
    "Goods and invoice agree.",
    "Delivery note is with the invoice.",
    "Second reminder was sent.",
    "Posted with the invoices of the week.",
    "Price as in the last order.",
)
OUTLOOKS = (
    "No change is planned.",
    "The service was good; prices will be discussed.",
    "Two complaints in the year, both settled.",
    "The account team changed in the spring.",
)


def payments_vouched(draft: Draft, event: Row) -> None:
    """A voucher for every payment of the last twelve months."""
    setting, rng = draft.setting, draft.rng("voucher texts")
    rows = draft.truth.rows(
        "SELECT v.*, s.date AS paid, s.amount, u.name FROM voucher v JOIN spend s ON s.id = v.spend_id"
        " JOIN supplier u ON u.id = s.supplier_id ORDER BY v.spend_id"
    )
    for row in rows:
        number, source = row["spend_id"], (f"voucher:{row['id']}",)
        centre = draft.fact(f"voucher:{number}:centre", row["cost_centre"], row["cost_centre"], rows=source)
        who = row["approver"] or UNSIGNED
        approver = draft.fact(f"voucher:{number}:approver", who, who, rows=source)
        approved = f"{approver}, {setting.day(row['approved_on'])}" if row["approver"] else approver
        text = (
            f"Payment voucher {number}\n\nPaid by: {setting.company}\nPaid on: {setting.day(row['paid'])}\n"
            f"Payee: {row['name']}\nAmount: {setting.money(row['amount'])}\nOrdered by: {rng.choice(ORDERED)}"
            f" {rng.randrange(10_000, 99_999)}\nCost centre: {centre}\nRequested by: {row['requester']}\n"
            f"Approved by: {approved}\n\n{rng.choice(REMARKS)}\n"
        )
        path = f"procurement/vouchers/{setting.file_name('voucher', number)}.txt"
        draft.document(path, "voucher", Text(text), event["id"], day=row["paid"], subject=f"payment:{number}")


def contracts_reviewed(draft: Draft, event: Row) -> None:
    """A note on every contract that was in force at the end of the fiscal year."""
    setting, year = draft.setting, event["payload"]["year"]
    rng = draft.rng(f"review texts {year}")
    rows = draft.truth.rows(
        "SELECT r.*, k.counterparty, k.title FROM review r JOIN contract k ON k.id = r.contract_id"
        " WHERE r.year = :y ORDER BY r.contract_id",
        y=year,
    )
    for row in rows:
        source = (f"review:{row['id']}",)
        volume = draft.fact(
            f"review:{row['contract_id']}:{year}:volume", setting.money(row["volume"]), row["volume"], "currency",
            currency=row["currency"], as_of=event["date"], known=event["date"], rows=source,
        )  # fmt: skip
        owner, address = (
            draft.fact(f"review:{row['contract_id']}:{year}:{what}", row[what], row[what], rows=source)
            for what in ("owner", "address")
        )
        text = (
            f"Review of contract {row['contract_id']}, fiscal year {year}\n\n"
            f"{row['title']} with {row['counterparty']}\n"
            f"Reviewed on: {setting.day(event['date'])}\nVolume in FY{year}: {volume}\nBusiness owner: {owner}\n"
            f"Notices go to: {address}\n\n{rng.choice(OUTLOOKS)}\n"
        )
        path = f"legal/reviews/{setting.file_name(row['contract_id'], 'review', f'FY{year}')}.txt"
        draft.document(
            path, "review", Text(text), event["id"], day=event["date"], author=draft.roles["counsel"]["name"],
            subject=f"contract:{row['contract_id']}",
        )  # fmt: skip


def balances_extracted(draft: Draft, event: Row) -> None:
    """Balances of every company at every month end, as the ledger has them on the day of the extract."""
    setting, figures = draft.setting, figures_at(draft, event["date"])
    entities = {row["id"]: row for row in draft.notes["entities"]}
    for entity in ("G", "S1", "S2"):
        currency = entities[entity]["currency"]
        total: dict[str, int] = {}
        for month in map(setting.label, setting.months):
            for code, amount in figures.movements(entity, [month]).items():
                total[code] = total.get(code, 0) + amount
            lines = [(code, draft.notes["accounts"][code], str(total[code]), currency) for code in sorted(total)]
            path = f"finance/monthly/{setting.file_name('month end', entity, month)}.csv"
            draft.document(
                path, "month_end", Delimited((("account", "name", "balance", "currency"), *lines)), event["id"],
                day=event["date"], as_of=month, author=draft.roles["controller"]["name"], subject=f"{entity}:{month}",
            )  # fmt: skip
