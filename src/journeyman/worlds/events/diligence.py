"""The later rounds of the bidders' questions: contract by contract, year by year, payment by payment."""

from __future__ import annotations

from journeyman.worlds.draft import Draft

PAYMENTS_ASKED = 70


def later_questions(draft: Draft, asked: set[str], clause_types: tuple[str, ...]) -> list[tuple[str, str]]:
    """(question, fact that answers it): a clause of every contract, the volume of every year, some cost centres.

    Args:
        asked: questions of the first round; none is asked twice.
        clause_types: kinds of clauses that bidders ask about.
    """
    rng = draft.rng("later questions")
    rows: list[tuple[str, str]] = []
    for contract in sorted(draft.notes["contracts"].values(), key=lambda one: str(one["id"])):
        clause = rng.choice([one for one in contract["clauses"] if one["type"] in clause_types])
        label, new = clause["type"].replace("_", " "), contract.get("amendment", {}).get("new")
        text = f"What does contract {contract['id']} with {contract['counterparty']} provide on {label}?"
        stands = new if new is not None and new["no"] == clause["no"] else clause
        if text not in asked:
            rows.append((text, f"clause:{stands['id']}"))
    for row in draft.truth.rows("SELECT contract_id, year FROM review ORDER BY contract_id, year"):
        text = f"What volume had contract {row['contract_id']} in fiscal year {row['year']}?"
        rows.append((text, f"review:{row['contract_id']}:{row['year']}:volume"))
    payments = [row["spend_id"] for row in draft.truth.rows("SELECT spend_id FROM voucher ORDER BY spend_id")]
    for number in rng.sample(payments, PAYMENTS_ASKED):
        rows.append((f"Which cost centre bears payment {number}?", f"voucher:{number}:centre"))
    rng.shuffle(rows)
    return rows
