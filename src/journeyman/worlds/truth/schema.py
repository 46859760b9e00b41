"""The tables of a world's truth. Money is whole units of its currency; dates are ISO texts; lists are JSON texts.

Every row carries ``valid_from, valid_to, known_from, known_to, source_event_id``: when it was so, when it was known,
and which event made it so. An open end is NULL.
"""

from __future__ import annotations

BITEMPORAL = ("valid_from", "valid_to", "known_from", "known_to", "source_event_id")

TABLES: dict[str, str] = {
    # people
    "entity": "id, name, kind, parent_id, currency, country, aliases",
    "person": "id, name, email, title, entity_id, unit, grade, salary",
    "org_edge": "id, entity_id, manager_id, report_id",
    "headcount": "id, entity_id, unit, month, fte",
    # ledger
    "account": "id, name, kind, sort",
    "journal": "id, entity_id, date, memo, currency, kind",
    "journal_line": "id, journal_id, account_id, dr, cr, text, currency",
    "fx_rate": "id, pair, date, kind, rate",
    "addback": "id, journal_id, amount, description, proposed_by, accepted, reason",
    # commercial
    "customer": "id, name, segment, region, entity_id, parent_id",
    "subscription": "id, customer_id, line, monthly, start_month, end_month",
    '"order"': "id, customer_id, line, date, quantity, unit_price, amount",
    "invoice": "id, customer_id, line, date, net, tax, gross, currency, journal_id, subscription_id",
    "price": "id, segment, step, sort, amount",
    "survey_response": "id, customer_id, segment, score, date, comment",
    "stratum": "id, segment, population",
    "supplier": "id, name, category, group_name",
    "spend": "id, supplier_id, as_written, date, amount, category",
    "voucher": "id, spend_id, cost_centre, requester, approver, approved_on",
    "kpi": "id, name, period, value, unit",
    "market_estimate": "id, source, rank, year, amount, currency, scale",
    "interview": "id, interviewee, role, customer_id, date, codes",
    "quote": "id, interview_id, code, text",
    # legal
    "contract": "id, kind, counterparty, customer_id, date, title, format, signed",
    "clause": "id, contract_id, no, type, params_json, supersedes, amendment_id",
    "amendment": "id, contract_id, no, date, signed",
    "review": "id, contract_id, year, owner, volume, currency, address",
    "holiday": "id, date, name",
    "filing": "id, item, status, due, done",
    "resolution": "id, meeting_id, no, kind, person, shares, text",
    "share_entry": "id, holder, share_class, shares, date, kind, reference",
    "defect": "id, document, kind, term, place",
    "claim": "id, description, amount, currency, date, warranty",
    "disclosure": "id, schedule, item, contract_id, listed",
    "privilege": "id, message_id, status, reason",
    # deals
    "deal": "id, name, target, seller, buyer, status, signing_date",
    "bid": "id, deal_id, bidder, bidder_alias, date, price, currency, conditions_json, supersedes",
    "comp_company": "id, name, currency, fiscal_year_end, "
    "revenue, ebitda, revenue_prior, ebitda_prior, net_debt, market_cap",
    "security": "id, holder, share_class, shares, strike, preference, participating, seniority",
    "debt": "id, name, amount, currency, rate, due, as_of",
    "covenant": "id, contract_id, name, clause_no, threshold, direction",
    "assumption": "id, model, name, value",
    "question": "id, no, text, answer, source_path, answerable",
    "checklist": "id, item, owner, status, due",
    # activity
    "meeting": "id, kind, date, title, attendees",
    "event": "id, kind, date, summary, payload",
}
"""Table -> its own columns; ``id`` is the primary key."""


def statements() -> list[str]:
    """The SQL that makes an empty truth."""
    made = []
    for table, columns in TABLES.items():
        own = ", ".join(c.strip() + (" PRIMARY KEY" if c.strip() == "id" else "") for c in columns.split(","))
        made.append(f"CREATE TABLE {table} ({own}, {', '.join(BITEMPORAL)})")
        name = table.strip('"')
        made.append(
            f"CREATE VIEW {name}_at AS SELECT t.* FROM {table} t, as_of_point p"
            " WHERE t.valid_from <= p.valid AND (t.valid_to IS NULL OR t.valid_to > p.valid)"
            " AND t.known_from <= p.known AND (t.known_to IS NULL OR t.known_to > p.known)"
        )
    return [
        "CREATE TABLE as_of_point (valid, known)",
        "INSERT INTO as_of_point VALUES ('9999-12-31', '9999-12-31')",
        *made,
        "CREATE INDEX line_of ON journal_line (journal_id)",
        "CREATE INDEX journal_by ON journal (entity_id, date)",
        "CREATE INDEX clause_of ON clause (contract_id)",
        "CREATE INDEX invoice_of ON invoice (customer_id)",
    ]
