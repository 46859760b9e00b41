"""Term sheet and purchase agreement: agreed terms, and a first draft that departs from some of them."""

from __future__ import annotations

from typing import Any

from journeyman.worlds.content import Block, Heading, Paragraph, Prose, Table
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.setting import Setting
from journeyman.worlds.truth.store import Row

LABELS = {
    "price": "Base price",
    "cap_percent": "Cap on liability",
    "basket": "Basket",
    "basket_type": "Basket type",
    "de_minimis": "De minimis",
    "escrow_percent": "Escrow",
    "survival_months": "Survival of warranties",
    "non_compete_months": "Non-compete",
    "long_stop_days": "Long stop date",
    "peg_months": "Working capital peg",
}


def terms_agreed(draft: Draft, event: Row) -> None:
    """The signed term sheet, and the first draft of the agreement by the buyer's side."""
    setting, terms = draft.setting, draft.notes["terms"]
    rows = [("Term", "Agreed")]
    for name, label in LABELS.items():
        rows.append((label, term(draft, "term_sheet", name, terms["agreed"][name])))
    blocks: list[Block] = [
        Heading(f"{draft.notes['deal']['name']}: term sheet", 0),
        Paragraph(
            f"between {draft.notes['entities'][3]['name']} (seller) and {terms['buyer']} (buyer), signed on"
            f" {setting.day(event['date'])}"
        ),
        Paragraph(
            "The parties have agreed on the following terms, which the purchase agreement is to reflect. Matters"
            " not mentioned here are left to the draft."
        ),
        Table(tuple(rows), widths=(2, 5)),
        Paragraph(
            "A deductible basket means that only the excess is payable; a tipping basket means that, once it is"
            " exceeded, the whole amount is payable."
        ),
        Paragraph(
            "This term sheet prevails over drafts of the purchase agreement. It binds the parties for thirty days."
        ),
    ]
    path = f"deals/{setting.file_name(draft.notes['deal']['name'], 'term sheet signed')}.pdf"
    draft.document(
        path,
        "term_sheet",
        Prose(tuple(blocks), "Term sheet", footer="Strictly confidential"),
        event["id"],
        day=event["date"],
        version="signed",
        subject="deal:D1",
    )
    _draft_agreement(draft, event)


def _draft_agreement(draft: Draft, event: Row) -> None:
    setting, terms = draft.setting, draft.notes["terms"]
    spa = f"deals/{setting.file_name('share purchase agreement', 'draft 1')}.docx"
    draft.document(
        spa,
        "spa",
        Prose(
            tuple(spa_blocks(draft)),
            "Share Purchase Agreement",
            header="Draft 1 of the buyer's counsel, subject to contract",
            footer="Confidential",
        ),
        event["id"],
        day=event["date"],
        author=terms["buyer"],
        version="draft 1",
        subject="deal:D1",
    )
    partner = draft.roles["outside_counsel"]
    draft.mail(
        event["id"],
        setting.instant(event["date"], draft.rng("spa mail")),
        partner,
        [draft.roles["gc"], draft.roles["counsel"]],
        "Share purchase agreement: first draft of the other side",
        f"Dear {draft.roles['gc']['name']},\n\nattached is the buyer's first draft. It does not follow the term sheet"
        " in every point. Please let us have your comments on the commercial terms; we will mark up the rest.\n\n"
        f"{partner['name']}\n{partner['entity_id']}\n",
        attachments=(spa,),
    )


def term(draft: Draft, document: str, name: str, value: Any) -> str:
    """A term in words, as the fact ``<document>:<name>``."""
    unit = unit_of(name)
    return draft.fact(
        f"{document}:{name}",
        term_in_words(draft.setting, name, value),
        value,
        unit,
        subject="deal:D1",
        predicate=name,
        currency=draft.setting.currency if unit == "currency" else "",
        as_of=draft.notes["terms"]["date"],
        known=draft.notes["terms"]["date"],
        rows=(f"assumption:{document.replace('_', ' ')}:{name}",),
    )


def unit_of(name: str) -> str:
    """Unit of a term, by its name."""
    if name in ("price", "basket", "de_minimis"):
        return "currency"
    ending = name.rpartition("_")[2]
    return ending if ending in ("percent", "months", "days") else "text"


def term_in_words(setting: Setting, name: str, value: Any) -> str:
    """``EUR 300.000``, ``12.5 per cent``, ``24 months``."""
    match unit_of(name):
        case "currency":
            return setting.money(value)
        case "percent":
            return f"{setting.number(value, 1)} per cent"
        case "months" | "days" as unit:
            return f"{value} {unit}"
    return str(value)


def spa_blocks(draft: Draft) -> list[Block]:
    """The agreement with the terms of the first draft; paragraphs are numbered ``8.2``."""
    setting, drafted = draft.setting, draft.notes["terms"]["drafted"]
    words = {
        "buyer": draft.notes["terms"]["buyer"],
        "target": draft.notes["deal"]["target"],
        "seller": draft.notes["entities"][3]["name"],
        "law": setting.locale["law"],
        "court": setting.locale["court"],
        "accounts_date": setting.day(month_end(setting.year_months(setting.years[-1])[-1])),
    }
    effect = {"deductible": "for the excess only", "tipping": "for the whole amount and not for the excess only"}
    kind = drafted["basket_type"]
    blocks: list[Block] = [
        Heading("Share Purchase Agreement", 0),
        Paragraph(f"between {words['seller']} and {words['buyer']} concerning all shares in {words['target']}"),
    ]
    for section in pack("spa")["section"]:
        blocks.append(Heading(f"{section['no']}. {section['title']}"))
        for number, text in enumerate(section["texts"], start=1):
            used = {
                name: term(draft, "spa_draft", name, value) for name, value in drafted.items() if f"{{{name}}}" in text
            }
            if "{basket_effect}" in text:
                used["basket_effect"] = draft.fact(
                    "spa_draft:basket_type", effect[kind], kind, subject="deal:D1", predicate="basket_type"
                )
            blocks.append(Paragraph(f"{section['no']}.{number} " + text.format(**words, **used)))
    blocks += [
        Heading("Schedule 4: consents"),
        Paragraph(
            "Consents under contracts with a change of control provision that"
            " requires consent, as listed in the Disclosure Schedule."
        ),
        Heading("Signatures"),
        Paragraph("Not signed: draft for discussion."),
    ]
    return blocks
