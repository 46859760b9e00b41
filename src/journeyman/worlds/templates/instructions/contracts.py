"""A provision of a contract as it is in force: in a signed amendment, else in the contract; found with tools."""

from __future__ import annotations

import re

from journeyman.worlds.template import Lost
from journeyman.worlds.templates import reading


def provision(contract: str, title: str) -> reading.Reading:
    """(path, text with addresses, words of the clause) of the clause with this heading. Raises Lost."""
    for path in (yield from reading.list_files(f"*{contract}[!0-9]*amendment*", "legal")):
        raw = yield from reading.addressed_text(path)
        flat = " ".join(reading.without_addresses(raw).split())
        found = re.search(
            rf"Clause \d+ \({re.escape(title)}\).*?following text:(.*?)(?= 2\. Continuation|$)", flat, re.I
        )
        if found and reading.is_signed(flat):
            return path, raw, found[1].strip()
    path, raw = yield from agreement(contract)
    return path, raw, reading.section(reading.without_addresses(raw), title)


def agreement(contract: str) -> reading.Reading:
    """(path, text with addresses) of the contract itself. Raises Lost."""
    paths = yield from reading.list_files(f"*{contract}[!0-9]*", "legal/contracts")
    if not paths:
        raise Lost(f"no contract {contract}")
    raw = yield from reading.addressed_text(paths[0])
    return paths[0], raw


def counterparty(raw: str) -> str:
    """The other side's name, as the contract has it. Raises Lost."""
    flat = " ".join(reading.without_addresses(raw).split())
    between = re.search(r"\bbetween (.+?) concerning", flat)
    party = re.search(r'and (.+?) \(the "Counterparty"\)', between[1]) if between else None
    if party is None:
        raise Lost(f"no counterparty in {flat[:80]}")
    return party[1]
