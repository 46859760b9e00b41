"""What must hold in every world: each a query that must return nothing."""

from __future__ import annotations

from journeyman.worlds.truth.store import Row, Truth

_CHAIN = """
WITH RECURSIVE chain(start, id, depth) AS (
  SELECT id, {link}, 1 FROM {table} WHERE {link} IS NOT NULL AND {link} <> ''
  UNION ALL
  SELECT chain.start, t.{link}, depth + 1 FROM chain JOIN {table} t ON t.id = chain.id
   WHERE t.{link} IS NOT NULL AND t.{link} <> '' AND depth < 50)
SELECT start FROM chain WHERE id = start"""

INVARIANTS: dict[str, str] = {
    "journals balance in each currency": """
        SELECT journal_id, currency, SUM(dr) - SUM(cr) AS off FROM journal_line
        GROUP BY journal_id, currency HAVING off <> 0""",
    "a journal's lines have its currency": """
        SELECT l.id FROM journal_line l JOIN journal j ON j.id = l.journal_id WHERE l.currency <> j.currency""",
    "the organisation has no cycle": """
        WITH RECURSIVE up(start, id, depth) AS (
          SELECT report_id, manager_id, 1 FROM org_edge WHERE valid_to IS NULL
          UNION ALL SELECT up.start, e.manager_id, depth + 1 FROM up
            JOIN org_edge e ON e.report_id = up.id AND e.valid_to IS NULL WHERE depth < 50)
        SELECT start FROM up WHERE id = start""",
    "an entity has one root": """
        SELECT entity_id, COUNT(*) AS roots FROM person p WHERE valid_to IS NULL AND grade IS NOT NULL
          AND NOT EXISTS (SELECT 1 FROM org_edge e WHERE e.report_id = p.id AND e.valid_to IS NULL)
        GROUP BY entity_id HAVING roots <> 1""",
    "invoices tie to journal lines": """
        SELECT j.id, SUM(i.net)
          - (SELECT COALESCE(SUM(cr) - SUM(dr), 0) FROM journal_line l JOIN account a ON a.id = l.account_id
          WHERE l.journal_id = j.id AND a.kind = 'revenue') AS off
        FROM invoice i JOIN journal j ON j.id = i.journal_id GROUP BY j.id HAVING off <> 0""",
    "an invoice adds up": "SELECT id FROM invoice WHERE net + tax <> gross",
    "clauses supersede without a cycle": _CHAIN.format(table="clause", link="supersedes"),
    "one clause of a number is in force": """
        SELECT a.id, b.id AS other FROM clause a JOIN clause b ON a.contract_id = b.contract_id AND a.no = b.no
          AND a.id < b.id
          AND a.valid_from < COALESCE(b.valid_to, '9999') AND b.valid_from < COALESCE(a.valid_to, '9999')
          AND a.known_from < COALESCE(b.known_to, '9999') AND b.known_from < COALESCE(a.known_to, '9999')""",
    "bids supersede without a cycle": _CHAIN.format(table="bid", link="supersedes"),
    "one bid of a bidder stands": """
        SELECT deal_id, bidder, COUNT(*) AS standing FROM bid WHERE valid_to IS NULL
        GROUP BY deal_id, bidder HAVING standing > 1""",
    "spans of time run forward": "\nUNION ALL ".join(
        f"SELECT id FROM {table} WHERE valid_to <= valid_from OR known_to <= known_from"
        for table in ("clause", "bid", "person", "journal", "contract", "org_edge")
    ),
    "every row names an event": "\nUNION ALL ".join(
        f"SELECT id FROM {table} WHERE source_event_id NOT IN (SELECT id FROM event)"
        for table in ("person", "journal", "invoice", "contract", "clause", "bid", "security", "share_entry")
    ),
}


def broken(truth: Truth) -> dict[str, list[Row]]:
    """The invariants that do not hold, with the rows that break them; empty for every published world."""
    found = {name: truth.rows(sql) for name, sql in INVARIANTS.items()}
    return {name: rows for name, rows in found.items() if rows}
