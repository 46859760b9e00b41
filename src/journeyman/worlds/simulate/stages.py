"""The stages of the simulation, in their order."""

from __future__ import annotations

from collections.abc import Callable

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.commercial import simulate_commercial
from journeyman.worlds.simulate.deals import simulate_deals
from journeyman.worlds.simulate.ledger import simulate_ledger
from journeyman.worlds.simulate.legal import simulate_legal
from journeyman.worlds.simulate.market import simulate_market
from journeyman.worlds.simulate.people import simulate_people
from journeyman.worlds.simulate.records import simulate_records
from journeyman.worlds.simulate.reporting import simulate_reporting
from journeyman.worlds.simulate.rules import simulate_rules
from journeyman.worlds.simulate.technical import simulate_technical

STAGES: dict[str, Callable[[Draft], None]] = {
    "people": simulate_people,
    "commercial": simulate_commercial,
    "ledger": simulate_ledger,
    "reporting": simulate_reporting,
    "legal": simulate_legal,
    "deals": simulate_deals,
    "market": simulate_market,
    "technical": simulate_technical,
    "records": simulate_records,
    "rules": simulate_rules,
}
"""Stage -> what it adds to a draft."""


def simulate(draft: Draft) -> None:
    """Run all stages."""
    for stage in STAGES.values():
        stage(draft)
