"""Process letter and bid letters, each with the mail that brought it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row


def process_launched(draft: Draft, event: Row) -> None:
    """The letter that asks for bids, says what they must state, and which source ranks above which."""
    setting, deal, banker = draft.setting, draft.notes["deal"], draft.roles["banker"]
    due = setting.today - timedelta(days=9)
    blocks: list[Block] = [
        Heading(f"{deal['name']}: process letter", 0),
        Paragraph(f"{banker['entity_id']}, {setting.day(event['date'])}"),
        Paragraph(
            f"On behalf of {draft.notes['entities'][3]['name']} we invite you to submit an offer for all shares in"
            f" {deal['target']}. Offers are due on {setting.day(due)} at noon."
        ),
        Heading("1. What an offer states"),
        *(
            Paragraph(text, "bullet")
            for text in (
                "the enterprise value on a cash-free and debt-free basis, as one amount;",
                "how the price is financed, and whether financing is committed;",
                "what due diligence remains; whether clearance by competition authorities is needed;",
                "whether exclusivity is asked for how long; whether a material adverse change clause is needed;",
                "the intentions for management and staff.",
            )
        ),
        Heading("2. Which statement counts"),
        Paragraph(
            "Offers may be improved until the process ends. A later signed statement of a bidder replaces an"
            " earlier one; a statement that is marked as a draft, or is not signed, does not. Statements by e-mail"
            " from a bidder's named signatory are treated as signed."
        ),
        Heading("3. Names"),
        Paragraph(
            "Bidders may act through companies formed for the purpose. Please state the group to which such a"
            " company belongs; offers are compared by group."
        ),
        Heading("4. General"),
        Paragraph(
            "The seller may change or end the process at any time; costs are not reimbursed. All contact goes"
            f" through {banker['name']}, {banker['email']}."
        ),
    ]
    path = f"deals/{setting.file_name(deal['name'], 'process letter')}.pdf"
    draft.document(
        path,
        "process_letter",
        Prose(tuple(blocks), "Process letter", footer="Strictly confidential"),
        event["id"],
        day=event["date"],
        author=banker["name"],
        subject="deal:D1",
    )
    draft.mail(
        event["id"],
        setting.instant(event["date"], draft.rng("process mail")),
        banker,
        [draft.roles["ceo"], draft.roles["cfo"]],
        f"{deal['name']}: process letter sent",
        f"Dear both,\n\nthe process letter went to six parties this morning; a copy is attached. Offers are due on"
        f" {setting.day(due)}.\n\n{banker['name']}\n{banker['entity_id']}\n",
        attachments=(path,),
    )


def bid_received(draft: Draft, event: Row) -> None:
    """A signed bid letter."""
    bid = draft.truth.one("SELECT * FROM bid WHERE id = :id", id=event["payload"]["bid"])
    path = bid_path(draft, bid)
    draft.document(
        path,
        "bid_letter",
        bid_letter(draft, bid, f"bid:{bid['id']}"),
        event["id"],
        day=event["date"],
        author=bid["bidder"],
        version="signed",
        subject=f"bid:{bid['bidder']}",
    )
    banker, signatory = draft.roles["banker"], bid_sender(bid)
    draft.mail(
        event["id"],
        draft.setting.instant(event["date"], draft.rng(f"bid mail {bid['id']}")),
        signatory,
        [banker, draft.roles["associate"]],
        f"{draft.notes['deal']['name']}: our offer",
        "Dear Sirs,\n\nplease find our offer attached. We would be glad to explain it in a call.\n\nYours"
        f" faithfully\n{bid['bidder']}\n",
        attachments=(path,),
    )


def bid_sender(bid: Row) -> str:
    """Address of a bidder's signatory."""
    domain = "".join(c for c in bid["bidder"].lower() if c.isalnum())
    return f"{bid['bidder']} <offers@{domain}.example>"


def bid_path(draft: Draft, bid: Row, *words: str) -> str:
    """Where a bid letter is filed; those of companies formed for the purpose go by that company's name."""
    conditions = json.loads(bid["conditions_json"])
    who = bid["bidder_alias"] if conditions["wording"] == 2 else bid["bidder"]
    return f"deals/bids/{draft.setting.file_name('offer', who, *words)}.pdf"


CONDITIONS = {
    "antitrust": (
        "We expect that clearance by competition authorities will be required.",
        "No clearance by competition authorities is required.",
    ),
    "mac_clause": (
        "The purchase agreement is to contain a material adverse change clause.",
        "We do not require a material adverse change clause.",
    ),
    "management_rollover": (
        "We expect senior management to reinvest part of its proceeds.",
        "We do not expect management to reinvest.",
    ),
    "locked_box": (
        "We are content with a locked box at the last balance sheet date.",
        "We expect completion accounts.",
    ),
}
"""Condition -> how a letter says that it is so, and that it is not."""


def bid_letter(draft: Draft, bid: Row, fact_id: str, note: str = "") -> Prose:
    """A letter; the price and each condition are facts ``<fact_id>:price`` and the like."""
    setting, words, conditions = draft.setting, pack("spa")["bid"], json.loads(bid["conditions_json"])
    rng, wording = draft.rng(f"bid {bid['id']}"), conditions["wording"]
    fill = {
        "bidder": bid["bidder"],
        "alias": bid["bidder_alias"],
        "target": draft.notes["deal"]["target"],
        "market": setting.trade["market"],
        "price": _state(
            draft, bid, fact_id, "price", setting.money(bid["price"]), bid["price"], "currency", bid["currency"]
        ),
    }
    blocks: list[Block] = [
        Heading(f"{bid['bidder_alias'] if wording == 2 else bid['bidder']}", 0),
        Paragraph(f"To {draft.roles['banker']['entity_id']}, {setting.day(bid['date'])}"),
        *([Paragraph(note)] if note else []),
        Paragraph(words["openings"][wording].format(**fill)),
    ]
    if wording == 2:
        blocks.append(Paragraph(f"{bid['bidder_alias']} is a wholly owned subsidiary of {bid['bidder']}."))
    blocks += [Heading("Price"), Paragraph(words["price"][wording].format(**fill))]
    blocks += _conditions(draft, bid, fact_id, conditions)
    blocks += [Heading("About us"), *(Paragraph(text.format(**fill)) for text in rng.sample(words["about"], 2))]
    until = setting.day(setting.today + timedelta(days=rng.randrange(20, 60)))
    blocks.append(Paragraph(f"This offer is valid until {until}. It is not binding, save for confidentiality."))
    blocks.append(Paragraph(f"Signed for {bid['bidder']}: authorised signatory"))
    if rng.random() < 0.5:
        shares = (("Equity", 0.55), ("Debt", 0.45))
        rows = [("Sources", setting.currency), *((name, setting.number(bid["price"] * part)) for name, part in shares)]
        blocks.append(Table(tuple(rows), caption="Sources of funds, indicative"))
    return Prose(tuple(blocks), f"Offer {bid['bidder']}", footer="Strictly confidential")


def _conditions(draft: Draft, bid: Row, fact_id: str, conditions: dict[str, Any]) -> list[Block]:
    words = pack("spa")["bid"]
    blocks: list[Block] = []
    for title, name in (("Financing", "financing"), ("Due diligence", "due_diligence")):
        said = words[name][conditions[name]]
        blocks += [Heading(title), Paragraph(_state(draft, bid, fact_id, name, said, conditions[name]))]
    blocks.append(Heading("Conditions"))
    for name, texts in CONDITIONS.items():
        said = texts[0] if conditions[name] else texts[1]
        blocks.append(Paragraph(_state(draft, bid, fact_id, name, said, str(conditions[name]).lower()), "bullet"))
    days = conditions["exclusivity_days"]
    said = f"{days} days" if days else "do not ask for exclusivity"
    asked = _state(draft, bid, fact_id, "exclusivity_days", said, days, "days")
    blocks.append(Paragraph(f"We ask for exclusivity for a period of {asked}." if days else f"We {asked}."))
    return blocks


def _state(
    draft: Draft, bid: Row, fact_id: str, name: str, surface: str, value: Any, unit: str = "text", currency: str = ""
) -> str:
    return draft.fact(
        f"{fact_id}:{name}",
        surface,
        value,
        unit,
        subject=f"bid:{bid['bidder']}",
        predicate=name,
        currency=currency,
        as_of=bid["date"],
        known=bid["date"],
        rows=(f"bid:{bid['id']}",),
    )
