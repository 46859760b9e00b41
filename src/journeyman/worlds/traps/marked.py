"""Tracked changes that nobody accepted, in the papers of the credit and of the sale: sites of T17."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.events.terms import term_in_words
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.deals import TIGHTER
from journeyman.worlds.traps.edits import one_of_kind, refile, revise_blocks, with_change

STEP = 0.25
"""How much looser the borrower would like its leverage to be; half of what the amendment took away."""


def mark_covenant(draft: Draft, rng: Random) -> Planted:
    """The amendment of the facilities agreement is a Word file with a wish of the borrower; the lender declines it."""
    credit, setting = draft.notes["credit"], draft.setting
    found = one_of_kind(draft, "credit_amendment")
    assert found is not None
    path = refile(draft, found.path, "docx")
    level, wish = float(credit["reset"]), float(credit["reset"]) + STEP
    fact, proposed = "covenant:leverage:amended", "covenant:leverage:proposed"
    bait = draft.fact(proposed, f"{setting.number(wish, 2)} to 1", wish, "ratio")
    signed = date.fromisoformat(credit["amended"])
    marked = (signed - timedelta(days=2)).isoformat()
    revise_blocks(draft, path, lambda blocks: with_change(blocks, fact, bait, author=setting.company, day=marked))
    day = (signed + timedelta(days=rng.randrange(1, 6))).isoformat()
    event = draft.event("proposal declined", day, "Wish for a looser covenant declined")
    stays = draft.plan.state(draft.plan.facts[fact], f"{setting.number(level, 2)} to 1")
    lender, cfo = draft.roles["lender"], draft.roles["cfo"]
    draft.mail(
        event,
        setting.instant(day, rng),
        lender,
        [cfo, draft.roles["treasurer"]],
        "Facilities agreement, amendment no. 1: change not accepted",
        f"Dear {cfo['name']},\n\nthe Word file of amendment no. 1 that was signed and filed still shows the change that"
        f" your side had marked in its clause 1. We did not accept that change. The ratio stays at {stays}.\n\n"
        f"{lender['name']}\n{lender['entity_id']}\n",
    )
    return Planted("T17", "covenant:leverage", (fact,), {"level": wish}, {"level": level}, (proposed,))


def mark_agreement(draft: Draft, rng: Random) -> Planted:
    """In the draft purchase agreement the buyer marks a term that agrees with the term sheet; our counsel declines."""
    terms, setting = draft.notes["terms"], draft.setting
    found = one_of_kind(draft, "spa")
    assert found is not None
    agreed, drafted = terms["agreed"], terms["drafted"]
    name = rng.choice([one for one in TIGHTER if drafted[one] == agreed[one]])
    wish = TIGHTER[name]
    fact, proposed = f"spa_draft:{name}", f"spa_draft:{name}:proposed"
    bait = draft.fact(proposed, term_in_words(setting, name, wish), wish, name.rpartition("_")[2])
    sent = date.fromisoformat(terms["date"])
    marked, day = (min(sent + timedelta(days=n), setting.today).isoformat() for n in (1, 3))
    revise_blocks(
        draft, found.path, lambda blocks: with_change(blocks, fact, bait, author=str(terms["buyer"]), day=marked)
    )
    event = draft.event("proposal declined", day, "Change in the draft purchase agreement declined")
    stays = draft.plan.state(draft.plan.facts[fact], term_in_words(setting, name, agreed[name]))
    counsel, gc = draft.roles["counsel"], draft.roles["gc"]
    draft.mail(
        event,
        setting.instant(day, rng),
        counsel,
        [gc],
        "Share purchase agreement: the buyer's tracked change",
        f"Dear {gc['name']},\n\nafter sending its draft the buyer marked one change in the file. We have told it that"
        f" we do not accept it. The paragraph keeps its text, {stays}, and the mark has to go when we answer.\n\n"
        f"{counsel['name']}\n",
    )
    return Planted("T17", f"spa_draft:{name}", (fact,), {name: wish}, {name: agreed[name]}, (proposed,))
