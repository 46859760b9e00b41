"""Which kind of event emits what."""

from __future__ import annotations

import json
from collections.abc import Callable

from journeyman.worlds.draft import Draft
from journeyman.worlds.events import (
    adjustments,
    audit,
    awards,
    bids,
    billing,
    capital,
    closing,
    consulting,
    contracts,
    corrections,
    dataroom,
    datasets,
    engineering,
    handbook,
    interviews,
    laboratory,
    models,
    noise,
    objections,
    peers,
    personnel,
    records,
    reports,
    terms,
    worksheets,
)
from journeyman.worlds.truth.store import Row

EMITTERS: dict[str, Callable[[Draft, Row], None]] = {
    "invoice run": billing.invoice_run,
    "contract signed": contracts.contract_signed,
    "amendment executed": contracts.amendment_executed,
    "credit agreement signed": contracts.credit_agreement_signed,
    "facility amended": contracts.facility_amended,
    "process launched": bids.process_launched,
    "bid received": bids.bid_received,
    "comparables drawn": peers.comparables_drawn,
    "models built": models.models_built,
    "cap table confirmed": capital.cap_table_confirmed,
    "shares issued": capital.shares_issued,
    "terms agreed": terms.terms_agreed,
    "spend extracted": consulting.spend_extracted,
    "price study": consulting.price_study,
    "survey closed": consulting.survey_closed,
    "key figures reported": consulting.key_figures_reported,
    "market studied": consulting.market_studied,
    "interview held": interviews.interview_held,
    "personnel exported": personnel.personnel_exported,
    "resignation": personnel.resignation,
    "script broken": engineering.script_broken,
    "orders exported": engineering.orders_exported,
    "factbook drafted": dataroom.factbook_drafted,
    "file room opened": dataroom.file_room_opened,
    "statement received": objections.statement_received,
    "add-backs proposed": adjustments.addbacks_proposed,
    "debt stated": adjustments.debt_stated,
    "claims listed": adjustments.claims_listed,
    "agreement audited": audit.agreement_circulated,
    "restatement": corrections.restatement,
    "leases restated": corrections.leases_restated,
    "bid improved": corrections.bid_improved,
    "papers prepared": worksheets.papers_prepared,
    "handbook issued": handbook.handbook_issued,
    "daily business": noise.daily_business,
    "award prepared": awards.award_prepared,
    "quote corrected": awards.quote_corrected,
    "water sampled": laboratory.water_sampled,
    "batteries aged": laboratory.batteries_aged,
    "payments exported": datasets.payments_exported,
    "load logged": datasets.load_logged,
    "payments vouched": records.payments_vouched,
    "contracts reviewed": records.contracts_reviewed,
    "balances extracted": records.balances_extracted,
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
