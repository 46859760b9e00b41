"""T17: a tracked change that was proposed and never accepted."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.events.contracts import contract_path
from journeyman.worlds.events.wording import value_in_words
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.legal import AMENDABLE, draw_params
from journeyman.worlds.traps.edits import revise_blocks, with_change
from journeyman.worlds.traps.marked import mark_agreement, mark_covenant
from journeyman.worlds.traps.operator import Operator
from journeyman.worlds.traps.rights import mark_deed

NUM_CONTRACTS = 3


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """In filed Word copies the other side's wish stands as a tracked change; a mail says that it failed."""
    sites = [c for _, c in sorted(draft.notes["contracts"].items()) if c["format"] == "docx" and "amendment" not in c]
    planted = []
    for contract in rng.sample(sites, min(NUM_CONTRACTS, len(sites))):
        clauses = [row for row in contract["clauses"] if row["type"] in AMENDABLE and row["params_json"]["value"]]
        planted.append(_propose(draft, rng, contract, rng.choice(clauses)))
    return [*planted, mark_covenant(draft, rng), mark_agreement(draft, rng), mark_deed(draft, rng)]


def _propose(draft: Draft, rng: Random, contract: dict[str, object], clause: dict[str, object]) -> Planted:
    params, kind = clause["params_json"], str(clause["type"])
    assert isinstance(params, dict)
    other = draw_params(rng, kind, draft.setting.currency)
    while other["value"] in (params["value"], 0):
        other = draw_params(rng, kind, draft.setting.currency)
    fact, bait = f"clause:{clause['id']}", f"clause:{clause['id']}:proposed"
    old, new = value_in_words(draft.setting, params), value_in_words(draft.setting, other)
    marked = draft.fact(
        bait,
        new,
        other["value"],
        other["unit"],
        currency=other.get("currency", ""),
        subject=f"contract:{contract['id']}",
        predicate=f"{kind} proposed",
    )
    day = min(date.fromisoformat(str(contract["date"])) + timedelta(days=rng.randrange(40, 90)), draft.setting.today)
    author, made = str(contract["counterparty"]), day.isoformat()
    revise_blocks(
        draft,
        contract_path(draft, contract),
        lambda blocks: with_change(blocks, fact, marked, author=author, day=made, comment="Proposed for the renewal."),
    )
    event = draft.event("proposal declined", day, f"Proposal on {contract['id']} declined")
    stated = draft.plan.state(draft.plan.facts[fact], old)
    counsel = draft.roles["counsel"]
    draft.mail(
        event,
        draft.setting.instant(day.isoformat(), rng),
        counsel,
        [draft.roles["controller"]],
        f"{contract['id']}: proposal declined",
        "Hello,\n\nthe counterparty marked a change in the Word file of"
        f" {contract['id']}. We did not accept it, and the file was filed with the mark. The clause stays at {stated}."
        f"\n\n{counsel['name']}\n",
    )
    return Planted(
        "T17",
        f"clause:{contract['id']}:{kind}",
        (fact,),
        {"value": other["value"]},
        {"value": params["value"]},
        (bait,),
    )


T17 = Operator("T17", "tracked change not accepted", "plan", apply)
