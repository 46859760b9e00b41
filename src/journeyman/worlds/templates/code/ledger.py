"""Reconciling a ledger with a bank statement: what the specification asks for, and what careless programs do instead.

The module is its own deliverable: ``program`` gives its text with other rules, so the program that is delivered and the
results that are expected come from one place. It needs the standard library only.
"""

from __future__ import annotations

from datetime import date

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

RULES: dict[str, Any] = {}
"""``window``, ``separator``, ``ignore``, and for each edge of the specification whether it is kept."""

HEADER = ["ledger_id", "bank_id", "status", "difference"]
Line = dict[str, str]


def reference(line: Line, rules: dict[str, Any]) -> str:
    """The reference as it compares."""
    text = line["reference"]
    text = text.strip() if rules["trims"] else text
    return text.lower() if rules["folds_case"] else text


def days(one: Line, other: Line) -> int:
    """Days between two lines."""
    return abs((date.fromisoformat(one["date"].strip()) - date.fromisoformat(other["date"].strip())).days)


def best(line: Line, free: list[Line], rules: dict[str, Any], same_amount: bool) -> Any:
    """The bank line that a ledger line takes, None for none."""
    wanted = reference(line, rules)
    if not wanted.strip() and rules["needs_reference"]:
        return None
    found = [
        (days(line, other) if rules["nearest"] else 0, other["id"] if rules["smaller_id"] else "", n)
        for n, other in enumerate(free)
        if reference(other, rules) == wanted
        and (int(other["amount"]) == int(line["amount"])) == same_amount
        and days(line, other) <= int(rules["window"] or 0)
    ]
    return free[min(found)[2]] if found else None


def reconcile(ledger: list[Line], bank: list[Line], rules: dict[str, Any]) -> list[list[str]]:
    """Lines of the result, its header first."""
    skip = rules["ignore"]
    if skip:
        ledger, bank = ([one for one in side if not reference(one, rules).startswith(skip.lower())]
                        for side in (ledger, bank))  # fmt: skip
    waiting = sorted(ledger, key=lambda one: (one["date"].strip() if rules["by_date"] else "", one["id"]))
    free, rows = list(bank), []
    for same_amount in (True, False):
        if not same_amount and not rules["says_amount"]:
            break
        for line in list(waiting):
            other = best(line, free, rules, same_amount)
            if other is None:
                continue
            difference = int(other["amount"]) - int(line["amount"])
            rows.append([line["id"], other["id"], "matched" if same_amount else "amount", str(difference)])
            waiting.remove(line)
            if rules["once"]:
                free.remove(other)
    rows += [[line["id"], "", "missing", ""] for line in waiting]
    rows.sort(key=lambda row: row[0])
    used = {row[1] for row in rows}
    left = sorted(one["id"] for one in bank if one["id"] not in used)
    return [HEADER, *rows, *(["", one, "unexpected", ""] for one in left if rules["says_unexpected"])]


def read(path: str, rules: dict[str, Any]) -> list[Line]:
    """Lines of a file; an empty file has none."""
    with open(path, newline="") as file:
        rows = [line.split(rules["separator"]) for line in file.read().splitlines()]
    return [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]


def main(ledger: str, bank: str, target: str) -> None:
    """``LEDGER BANK OUT``."""
    rows = reconcile(read(ledger, RULES), read(bank, RULES), RULES)
    with open(target, "w", newline="") as file:
        file.write(as_text(rows, RULES["separator"]))


def as_text(rows: list[list[str]], separator: str) -> str:
    """Rows as the program writes them; nothing is quoted."""
    return "".join(separator.join(row) + "\n" for row in rows)


def program(rules: dict[str, Any]) -> str:
    """The text of a program that follows these rules."""
    from pathlib import Path

    text = Path(__file__).read_text()
    head, _, _ = text.partition("def program(")
    head = head.replace("RULES: dict[str, Any] = {}", f"RULES: dict[str, Any] = {rules!r}")
    head = head.partition('"""\n\n')[2]
    return (
        f'"""Reconcile a ledger with a bank statement."""\n\n{head.rstrip()}\n\n\nimport sys\n\nmain(*sys.argv[1:4])\n'
    )
