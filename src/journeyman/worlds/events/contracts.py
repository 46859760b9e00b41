"""Contracts signed and amended: the document, and the mail that sends it round."""

from __future__ import annotations

from typing import Any

from journeyman.worlds.content import Block, Heading, PageBreak, Paragraph, Prose, Table
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.wording import clause_text, value_in_words
from journeyman.worlds.truth.store import Row


def contract_signed(draft: Draft, event: Row) -> None:
    """The signed contract as PDF or Word file."""
    contract = draft.notes["contracts"][event["payload"]["contract"]]
    path = contract_path(draft, contract)
    prose = Prose(
        tuple(contract_blocks(draft, contract)),
        f"{contract['title']} {contract['id']}",
        header=f"{contract['id']}   {contract['title']}",
        footer=draft.setting.layout["footer"],
        setter="columns" if draft.setting.layout["columns"] == 2 else "plain",
    )
    draft.document(
        path,
        "contract",
        prose,
        event["id"],
        day=contract["date"],
        author=draft.roles["counsel"]["name"],
        version="signed",
        subject=f"contract:{contract['id']}",
    )


def contract_path(draft: Draft, contract: dict[str, Any], *words: str) -> str:
    """Where a contract is filed."""
    name = draft.setting.file_name(contract["id"], contract["counterparty"], *words)
    return f"legal/contracts/{name}.{contract['format']}"


def contract_blocks(draft: Draft, contract: dict[str, Any]) -> list[Block]:
    """Parties, recitals, definitions, operative and general clauses, signatures."""
    setting, rng, library = draft.setting, draft.rng(f"contract {contract['id']}"), pack("clauses")
    we, they = setting.company, contract["counterparty"]
    words = {
        "we": we,
        "they": they,
        "market": setting.trade["market"],
        "line": rng.choice(setting.trade["lines"]).lower(),
        "supply": rng.choice(setting.trade["supplies"]),
        "place": f"{rng.randrange(2, 90)} Station Road, {setting.city}",
    }
    kind, boiler = library["kinds"][contract["kind"]], library["boilerplate"]
    blocks: list[Block] = [
        Heading(contract["title"], 0),
        Paragraph(f"Contract number {contract['id']}, dated {setting.day(contract['date'])}"),
        Paragraph(
            f'between {we}, {setting.city} ("{setting.short}"), and {they} (the "Counterparty"),'
            f" concerning {kind['purpose'].format(**words)}."
        ),
        Heading("1. Recitals"),
        *(Paragraph(text.format(**words)) for text in rng.sample(boiler["recitals"], 3)),
        Heading("2. Definitions"),
        *(Paragraph(text.format(**words)) for text in boiler["definitions"]),
    ]
    extra = rng.sample(boiler["clauses"], len(boiler["clauses"]) - rng.randrange(2, 6))
    name, text = extra.pop()
    blocks += [Heading(f"3. {name}"), Paragraph(text)]
    for clause in contract["clauses"]:
        title = library["types"][clause["type"]]["title"]
        blocks.append(Heading(f"{clause['no']}. {title}"))
        blocks.append(Paragraph(clause_text(draft, contract, clause, we, f"clause:{clause['id']}")))
    for number, (name, text) in enumerate(extra, start=contract["clauses"][-1]["no"] + 1):
        blocks += [Heading(f"{number}. {name}"), Paragraph(text)]
    return [*blocks, *signatures(draft, they, contract["date"]), *_schedules(draft, contract)]


def _schedules(draft: Draft, contract: dict[str, Any]) -> list[Block]:
    """Schedule A on performance, Schedule B on persons: nothing in them is operative for any question asked."""
    rng, library = draft.rng(f"schedules {contract['id']}"), pack("clauses")["schedules"]
    levels = [("Level", "Value"), *((name, rng.choice(values)) for name, *values in library["levels"])]
    ours = [draft.roles[role] for role in rng.sample(("plant", "sales", "procurement", "controller"), 2)]
    persons = [("Side", "Person", "Function"), *((draft.setting.short, one["name"], one["title"]) for one in ours)]
    persons.append((contract["counterparty"], "to be named", "account team"))
    texts = rng.sample(library["services"], rng.randrange(5, 8))
    return [
        PageBreak(),
        Heading("Schedule A: performance"),
        *(Paragraph(f"A.{number} {text}") for number, text in enumerate(texts, start=1)),
        Table(tuple(levels), caption="Levels", widths=(3, 2)),
        Heading("Schedule B: persons and meetings"),
        *(Paragraph(f"B.{number} {text}") for number, text in enumerate(library["governance"], start=1)),
        Table(tuple(persons), caption="Persons", widths=(3, 3, 3)),
    ]


def signatures(draft: Draft, they: str, day: str) -> list[Block]:
    """A signature page on which both parties have signed."""
    setting, signatory = draft.setting, draft.roles["ceo"]
    return [
        Heading("Signatures"),
        Paragraph(f"Signed for {setting.company}: {signatory['name']}, {signatory['title']}, {setting.day(day)}"),
        Paragraph(f"Signed for {they}: authorised signatory, {setting.day(day)}"),
    ]


def amendment_executed(draft: Draft, event: Row) -> None:
    """The signed amendment, and a mail that tells finance."""
    setting = draft.setting
    contract = draft.notes["contracts"][event["payload"]["contract"]]
    amendment = contract["amendment"]
    path = amendment_path(draft, contract)
    blocks = amendment_blocks(draft, contract, amendment["new"], amendment["date"], f"clause:{amendment['new']['id']}")
    blocks += signatures(draft, contract["counterparty"], amendment["date"])
    title = f"Amendment no. 1 to {contract['id']}"
    draft.document(
        path,
        "amendment",
        Prose(tuple(blocks), title, header=title, footer=setting.layout["footer"]),
        event["id"],
        day=amendment["date"],
        author=draft.roles["counsel"]["name"],
        version="signed",
        subject=f"contract:{contract['id']}",
    )
    counsel, controller = draft.roles["counsel"], draft.roles["controller"]
    clause = pack("clauses")["types"][amendment["new"]["type"]]["title"].lower()
    draft.mail(
        event["id"],
        setting.instant(amendment["date"], draft.rng(f"amendment mail {contract['id']}")),
        counsel,
        [controller, draft.roles["cco"]],
        f"{contract['id']} {contract['counterparty']}: amendment signed",
        f"Dear colleagues,\n\nthe amendment to {contract['id']} was signed by both sides today. It replaces the clause"
        f" on {clause}; everything else stays as it was. The signed copy is attached and filed with the contract.\n\n"
        f"{counsel['name']}\n",
        attachments=(path,),
    )


def amendment_path(draft: Draft, contract: dict[str, Any]) -> str:
    """Where a signed amendment is filed."""
    return f"legal/amendments/{draft.setting.file_name(contract['id'], 'amendment 1 signed')}.pdf"


def amendment_blocks(
    draft: Draft, contract: dict[str, Any], clause: dict[str, Any], day: str, fact_id: str
) -> list[Block]:
    """What an amendment says, without its signatures."""
    setting = draft.setting
    old = next(row for row in contract["clauses"] if row["no"] == clause["no"])
    title = pack("clauses")["types"][clause["type"]]["title"]
    text = clause_text(draft, {**contract, "date": day}, clause, setting.company, fact_id)
    return [
        Heading(f"Amendment no. 1 to the {contract['title']}", 0),
        Paragraph(f"between {setting.company} and {contract['counterparty']}, dated {setting.day(day)}"),
        Paragraph(
            f"The parties concluded the agreement with the number {contract['id']} on"
            f' {setting.day(contract["date"])} (the "Agreement"). They amend it as follows.'
        ),
        Heading(f"1. Clause {clause['no']} ({title})"),
        Paragraph(
            f"Clause {clause['no']}, which provided for {value_in_words(setting, old['params_json'])}, is replaced"
            " in its entirety by the following text:"
        ),
        Paragraph(text, "quote"),
        Heading("2. Continuation"),
        Paragraph(
            "All other provisions of the Agreement remain in force without change. In case of conflict this"
            f" amendment prevails. It takes effect on {setting.day(day)}."
        ),
    ]


def credit_agreement_signed(draft: Draft, event: Row) -> None:
    """The facilities agreement: a long document with definitions, covenants and undertakings."""
    setting, credit = draft.setting, draft.notes["credit"]
    words = {
        "company": setting.company,
        "lender": draft.notes["firms"]["lender"],
        "currency": setting.currency,
        "short": setting.short,
        "law": setting.locale["law"],
        "day": setting.day(credit["date"]),
    }
    levels, numbers = credit["levels"], credit["numbers"]
    covenants = {
        name: draft.fact(
            f"covenant:{name}",
            _level(draft, name, level),
            level,
            "currency" if name == "liquidity" else "ratio",
            currency=setting.currency if name == "liquidity" else "",
            as_of=credit["date"],
            known=credit["date"],
            rows=(f"covenant:CV-{name}",),
        )
        for name, level in levels.items()
    }
    blocks: list[Block] = [Heading("Senior Facilities Agreement", 0)]
    library = pack("credit")
    for section in library["section"]:
        blocks.append(Heading(f"{section['no']}. {section['title']}"))
        blocks += [
            Paragraph(text.format(**words, **covenants, **{f"n_{k}": v for k, v in numbers.items()}))
            for text in section["texts"]
        ]
    blocks += [PageBreak(), *signatures(draft, words["lender"], credit["date"])]
    path = f"legal/finance/{setting.file_name('senior facilities agreement')}.pdf"
    draft.document(
        path,
        "credit_agreement",
        Prose(tuple(blocks), "Senior Facilities Agreement", header=f"{setting.short}   Senior Facilities Agreement"),
        event["id"],
        day=credit["date"],
        author=draft.roles["outside_counsel"]["name"],
        version="signed",
        subject="contract:CA",
    )


def _level(draft: Draft, name: str, level: float) -> str:
    return draft.setting.money(level) if name == "liquidity" else f"{draft.setting.number(level, 2)} to 1"


def facility_amended(draft: Draft, event: Row) -> None:
    """Amendment no. 1: a tighter leverage covenant."""
    setting, credit = draft.setting, draft.notes["credit"]
    level = draft.fact(
        "covenant:leverage:amended",
        _level(draft, "leverage", credit["reset"]),
        credit["reset"],
        "ratio",
        as_of=credit["amended"],
        known=credit["amended"],
        supersedes="covenant:leverage",
        rows=("covenant:CV-leverage-b",),
    )
    number = credit["numbers"]["leverage"]
    blocks: list[Block] = [
        Heading("Amendment no. 1 to the Senior Facilities Agreement", 0),
        Paragraph(
            f"between {setting.company} and {draft.notes['firms']['lender']}, dated {setting.day(event['date'])}"
        ),
        Heading("1. Amendment"),
        Paragraph(
            f"In clause {number} (Leverage) the ratio is replaced, with effect for every Test Date after the date"
            f" of this amendment, by the following: Leverage shall not exceed {level}."
        ),
        Heading("2. Fee"),
        Paragraph(
            "The Borrower pays an amendment fee of 0.15 per cent of the total commitments within five Business"
            " Days of signing."
        ),
        Heading("3. Continuation"),
        Paragraph("In all other respects the Facilities Agreement continues in full force."),
        *signatures(draft, draft.notes["firms"]["lender"], event["date"]),
    ]
    path = f"legal/finance/{setting.file_name('facilities agreement amendment 1')}.pdf"
    draft.document(
        path,
        "credit_amendment",
        Prose(tuple(blocks), "Amendment no. 1", footer=setting.layout["footer"]),
        event["id"],
        day=event["date"],
        version="signed",
        subject="contract:CA",
    )
