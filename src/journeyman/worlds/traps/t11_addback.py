"""T11 among the add-backs: nobody can say anything about one of them, and the mail about it says whom else to ask."""

from __future__ import annotations

from dataclasses import replace

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted

WORDS = "the record holds nothing on it"
ROLES = ("coo", "treasurer", "sales", "marketing")
"""Who might know: none of those who write the mails."""


def unsupported(draft: Draft) -> list[Planted]:
    """An item whose background was asked for in vain: the answer gives no reason, only a name."""
    withdrawn = draft.notes.get("withdrawn", ())
    rows = draft.truth.rows("SELECT * FROM addback WHERE accepted = 0 ORDER BY id")
    items = [row for row in rows if row["id"] not in withdrawn]
    if not items:
        return []
    rng = draft.rng("add-back without support")
    item, who = rng.choice(items), draft.roles[rng.choice(ROLES)]
    subject = f"Background on {item['id']}"
    at = next(number for number, mail in enumerate(draft.plan.mails) if mail.subject == subject)
    mail, place = draft.plan.mails[at], f"addback:{item['id']}"
    support = draft.fact(f"{place}:support", WORDS, "none", rows=(place,))
    whom = draft.fact(f"{place}:whom", who["name"], who["name"], rows=(place,))
    body = (
        f'Hello,\n\non "{item["description"]}" ({item["journal_id"]}) you asked for the background: {support}, no'
        " contract, no invoice, no note, and I cannot tell what it was for or whether it comes again. Please do not"
        f" guess. If anybody knows, it is {whom}.\n\n{mail.sender.partition(' <')[0]}\n"
    )
    draft.plan.mails[at] = replace(mail, body=body)
    draft.plan.facts.pop(f"{place}:reason")
    draft.truth.recode("addback", item["id"], "reason", WORDS)
    return [Planted("T11", place, (f"{place}:support", f"{place}:whom"), {"decision": "accepted", "whom": "none"},
                    {"decision": "open", "whom": who["name"]}, (f"{place}:amount",))]  # fmt: skip
