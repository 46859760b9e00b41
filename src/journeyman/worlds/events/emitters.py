"""Which kind of event emits what."""

from __future__ import annotations

import json
from collections.abc import Callable

from journeyman.worlds.draft import Draft
from journeyman.worlds.events import billing, closing, contracts, reports
from journeyman.worlds.truth.store import Row

EMITTERS: dict[str, Callable[[Draft, Row], None]] = {
    "invoice run": billing.invoice_run,
    "contract signed": contracts.contract_signed,
    "amendment executed": contracts.amendment_executed,
    "credit agreement signed": contracts.credit_agreement_signed,
    "facility amended": contracts.facility_amended,
    "quarter closed": closing.quarter_closed,
    "year reported": reports.year_reported,
    "half year reported": reports.half_reported,
}
"""Kind of event -> what it emits. Kinds that are not here leave no trace but rows of the truth."""


def emit_all(draft: Draft) -> None:
    """Let every event emit, in the order of time."""
    for event in draft.truth.rows("SELECT * FROM event ORDER BY date, id"):
        if event["kind"] in EMITTERS:
            EMITTERS[event["kind"]](draft, {**event, "payload": json.loads(event["payload"])})
