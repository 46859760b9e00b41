"""Records in bulk: a voucher for every payment, a yearly review of every contract, balances of every month.

They are what long tasks are made of: each is a small file, and each says something that no list repeats.
"""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end

CENTRES = ("CC-110", "CC-120", "CC-210", "CC-230", "CC-310", "CC-450")
"""Cost centres. The first ones bear most."""

UNSIGNED = 0.08
"""Share of vouchers that nobody approved."""

NUM_REVIEWED_YEARS = 2


def simulate_records(draft: Draft) -> None:
    """Vouchers, reviews, and the event that extracts monthly balances."""
    rng = draft.rng("records")
    _vouchers(draft, rng)
    _reviews(draft, rng)
    draft.event("balances extracted", draft.setting.today - timedelta(days=4), "Balances of all month ends extracted")


def _vouchers(draft: Draft, rng: Random) -> None:
    """One per payment: which cost centre bears it, who asked for it, who approved it; some nobody did."""
    day = draft.setting.today - timedelta(days=68)
    event = draft.event("payments vouched", day, "Vouchers of twelve months filed")
    staff = [one for team in draft.notes["teams"].values() for one in team]
    approvers = [draft.roles[role] for role in ("procurement", "plant", "controller", "coo")]
    rows: list[dict[str, Any]] = []
    for payment in draft.truth.rows("SELECT id, date FROM spend WHERE valid_to IS NULL ORDER BY id"):
        approver = rng.choice(approvers)
        signed = (date.fromisoformat(payment["date"]) - timedelta(days=rng.randrange(1, 9))).isoformat()
        is_open = rng.random() < UNSIGNED
        rows.append({
            "id": f"VO-{payment['id']}", "spend_id": payment["id"],
            "cost_centre": rng.choices(CENTRES, (6, 5, 4, 3, 2, 2))[0], "requester": rng.choice(staff)["name"],
            "approver": "" if is_open else approver["name"], "approved_on": "" if is_open else signed,
            "valid_from": payment["date"], "known_from": payment["date"],
        })  # fmt: skip
    draft.truth.add("voucher", rows, event=event)


def _reviews(draft: Draft, rng: Random) -> None:
    """What each contract came to in a fiscal year, who looks after it, and where notices go."""
    setting = draft.setting
    owners = [draft.roles[role] for role in ("procurement", "plant", "sales", "marketing", "platform", "data", "hrbp")]
    kept: dict[str, dict[str, Any]] = {}
    for year in setting.years[-NUM_REVIEWED_YEARS:]:
        ends = max(month_end(month) for month in setting.months if setting.year_of(month) == year)
        day = ends + timedelta(days=12)
        event = draft.event("contracts reviewed", day, f"Contracts of FY{year} reviewed", year=year)
        rows = []
        for contract in sorted(draft.notes["contracts"].values(), key=lambda one: str(one["id"])):
            if contract["date"] > ends.isoformat():
                continue
            word = "".join(c for c in contract["counterparty"].lower() if c.isalnum())[:18]
            before = kept.get(contract["id"])
            stays = before is not None and rng.random() < 0.6
            mailbox = f"{rng.choice(('legal', 'notices', 'contracts', 'office'))}@{word}.example"
            row = {
                "id": f"RV-{contract['id']}-{year}", "contract_id": contract["id"], "year": year,
                "owner": before["owner"] if before and stays else rng.choice(owners)["name"],
                "volume": 100 * rng.randrange(90, 26_000), "currency": setting.currency,
                "address": before["address"] if before and stays else mailbox,
            }  # fmt: skip
            kept[contract["id"]] = row
            rows.append(row)
        draft.truth.add("review", rows, event=event, at=day.isoformat())
