"""A shareholders' agreement in circulation, with defects of its terms and references, recorded one by one."""

from __future__ import annotations

from journeyman.worlds.content import Block, Heading, Paragraph, Prose
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row

TERMS = (
    ("Approved Budget", "the budget of a fiscal year that the Board has adopted"),
    ("Reserved Matters", "the matters that need the consent of a qualified majority"),
    ("Transfer Notice", "the notice by which a Shareholder offers its shares"),
    ("Fair Price", "the price that an expert determines"),
    ("Permitted Transferee", "an affiliate of a Shareholder that has acceded to this Agreement"),
    ("Deadlock", "a matter on which two successive meetings of the Board have not decided"),
    ("Lock-up Period", "the period of three years from the date of this Agreement"),
)
UNDEFINED = ("Founding Holder", "Exit Committee", "Completion Balance", "Preferred Return")
UNUSED = (("Auditor", "the auditor for the time being of the Company"), ("Group Policy", "the policy on dealings"))
SECTIONS = (
    (
        "Board",
        "The Board consists of five members. It adopts the Approved Budget before the start of each fiscal year and"
        " watches over it. Reserved Matters are decided under clause {reserved}.",
    ),
    (
        "Reserved Matters",
        "The Company does nothing that is a Reserved Matter without the consent of Shareholders who hold"
        " two thirds of the votes. Borrowing beyond the Approved Budget is one of the Reserved Matters.",
    ),
    (
        "Transfer of shares",
        "During the Lock-up Period no Shareholder disposes of shares, except to a Permitted Transferee."
        " After it a Shareholder who wishes to sell gives a Transfer Notice; the others may buy at the Fair Price.",
    ),
    (
        "Fair Price",
        "The Fair Price is determined by an expert within thirty days of the Transfer Notice. The expert's fee is"
        " borne as clause {costs} provides.",
    ),
    (
        "Deadlock",
        "In case of a Deadlock the chairs of the Shareholders meet within ten days. If they do not agree, clause"
        " {transfer} applies with the necessary changes.",
    ),
    (
        "Costs",
        "Each Shareholder bears its own costs. The costs of an expert are shared equally, unless the expert finds that"
        " a Shareholder has acted without good cause.",
    ),
    ("Duration", "This Agreement ends when one Shareholder holds all shares. Clause {costs} survives."),
)


def agreement_circulated(draft: Draft, event: Row) -> None:
    """The document; its defects are rows of ``defect`` with kind, term and clause."""
    rng = draft.rng("audit")
    numbers = {"reserved": 3, "transfer": 4, "costs": 7}
    defects: list[tuple[str, str, str]] = []
    unused = rng.sample(UNUSED, rng.randrange(1, 3))
    terms = [*TERMS, *unused]
    defects += [("unused term", name, "1") for name, _ in unused]
    wrong_reference = rng.choice(("reserved", "costs", "transfer"))
    places = {"reserved": "2", "costs": "5", "transfer": "6"}
    numbers_used = {**numbers, wrong_reference: rng.choice((9, 11, 12))}
    defects.append(("dangling reference", f"clause {numbers_used[wrong_reference]}", places[wrong_reference]))
    blocks: list[Block] = [Heading("Shareholders' Agreement", 0), Heading("1. Definitions")]
    blocks += [Paragraph(f'"{name}" means {meaning}.') for name, meaning in sorted(terms)]
    blocks.append(
        Paragraph(
            '"Board" means the board of directors of the Company. "Company" means'
            f' {draft.setting.company}. "Shareholder" means a holder of shares who is party to this'
            " Agreement."
        )
    )
    extra = rng.sample(UNDEFINED, rng.randrange(1, 3))
    for number, (title, text) in enumerate(SECTIONS, start=2):
        used = {
            **numbers,
            **({wrong_reference: numbers_used[wrong_reference]} if str(number) == places[wrong_reference] else {}),
        }
        body = text.format(**used)
        if number in (3, 8) and extra:
            name = extra.pop()
            body += f" The rights of the {name} are not affected."
            defects.append(("undefined term", name, str(number)))
        blocks += [Heading(f"{number}. {title}"), Paragraph(f"{number}.1 {body}")]
    rows = [
        {"id": f"DF-SHA-{n}", "document": "shareholders agreement", "kind": kind, "term": name, "place": place}
        for n, (kind, name, place) in enumerate(defects, start=1)
    ]
    draft.truth.add("defect", rows, event=event["id"], at=event["date"])
    path = f"legal/corporate/{draft.setting.file_name('shareholders agreement', 'draft')}.docx"
    draft.document(
        path,
        "shareholders_agreement",
        Prose(tuple(blocks), "Shareholders' Agreement", header="Draft"),
        event["id"],
        day=event["date"],
        author=draft.roles["outside_counsel"]["name"],
        version="draft",
    )
