"""CL3: the draft purchase agreement brought into line with the signed term sheet, and nothing else changed.

What makes it hard: some terms of the draft are right, a note below the term sheet replaces a figure of its table, a
term that was right may bear a tracked change that was declined, and whatever was not agreed must stay as it is.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import FOLDER, Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.law.terms import term_sheet
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office

FILE = "spa_draft_2.docx"
TERMS = {
    "cap_percent": ("Cap on liability", r"limited to (.+?) of the Base Price"),
    "basket": ("Basket", r"is more than (.+?), in which case"),
    "escrow_percent": ("Escrow", r"An amount of (.+?) of the Base Price"),
    "survival_months": ("Survival of warranties", r"notified within (.+?) of Completion"),
    "non_compete_months": ("Non-compete", r"For (.+?) after Completion"),
    "long_stop_days": ("Long stop date", r"not fulfilled within (.+?) of the date"),
}
"""Term -> its line in the term sheet, and the words of the draft around it."""

MARKS = re.compile(r"(?: \[[a-z]+ \S+\])+$")
"""What a line of the agent's tool names beside a paragraph: its tracked changes and comments."""


@dataclass(frozen=True)
class CL3:
    """See the module."""

    id: str = "CL3"
    domain: str = "law"
    title: str = "purchase agreement amended as the term sheet says"
    traps: tuple[str, ...] = ("T9", "T17")

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        drafts = office.of_kind("spa")
        if len(drafts) != 1:
            raise Unbindable("no draft of the agreement, or several")
        path = drafts[0].path
        paragraphs = _numbered(office.files[path], path)
        agreed = {name: office.where(f"term_sheet:{name}") for name in TERMS}
        edits = []
        for name, (_, pattern) in TERMS.items():
            if not agreed[name]:
                raise Unbindable(f"the term sheet does not state {name}")
            clause, text, old = _place(paragraphs, pattern)
            new = agreed[name][0].surface
            if old != new:
                edits.append({"clause": clause, "value": new, "before": text, "old": old, "name": name})
        if len(edits) < 3:
            raise Unbindable("fewer than three terms differ")
        noted = office.trap("T9", "term_sheet:basket")
        bait = office.where("term_sheet:basket:table") if noted else ()
        table = bait[0].surface.removesuffix(" (1)") if bait else ""
        marked = office.trap("T17", "spa_draft:")
        mark = next((one["clause"] for one in edits if marked and marked.site.endswith(f":{one['name']}")), "")
        ask = {"path": path, "file": FILE, "terms": [label for label, _ in TERMS.values()]}
        answer = {"edits": [{"clause": one["clause"], "value": one["value"]} for one in edits]}
        wrong = _wrong(edits, paragraphs, table, mark)
        return Bound(
            self.id, self.domain, office.id, _instruction(office, ask, rng), ask, answer, _checks(path, edits),
            (FILE,), wrong, trap_blind=_caught(edits, paragraphs, table, mark),
            single={"edits": []},
            facts=(*(f"term_sheet:{one['name']}" for one in edits), *(marked.fact_ids if mark and marked else ())),
            reads=(path, *(document.path for document in office.of_kind("term_sheet"))), originals=(path,),
            traps=tuple(sorted({one.trap for one in wrong if one.trap})), knobs=knobs,
            notes={"edits": [one["name"] for one in edits]},
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``."""
        from journeyman.documents import edit

        path = bound.ask["path"]
        paragraphs = {one["clause"]: one for one in _numbered(world[path], path)}
        found = [_place(list(paragraphs.values()), pattern) for _, pattern in TERMS.values()]
        terms = {clause: old for clause, _, old in found}
        changes: list[dict[str, Any]] = []
        for one in answer["edits"]:
            value, place = "" if one["value"] is None else str(one["value"]), paragraphs.get(one["clause"])
            if place is None:
                changes.append({"op": "insert", "address": "body", "text": f"{one['clause']} {value}"})
            else:
                text = place["text"].replace(terms.get(one["clause"], place["text"]), value)
                changes.append({"op": "set", "address": place["address"], "text": text})
        return {FILE: edit(world[path], path, changes).data if changes else world[path]}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        agreed = yield from term_sheet()
        copy = f"{FOLDER}/{FILE}"
        yield from reading.shell(f"mkdir -p {FOLDER} && cp '{ask['path']}' {copy}")
        text = yield from reading.addressed_text(copy)
        paragraphs = []
        for line in text.splitlines():
            body = MARKS.sub("", reading.without_addresses(line))
            if match := re.match(r"(\d+\.\d+) ", body):
                paragraphs.append({"clause": match[1], "text": body, "address": line.split(" ", 1)[0]})
        for label, pattern in TERMS.values():
            if label not in agreed:
                raise Lost(f"the term sheet has no line {label}")
            new = agreed[label]
            clause, old_text, old = _place(paragraphs, pattern)
            if old != new:
                address = next(one["address"] for one in paragraphs if one["clause"] == clause)
                arguments = {"file_path": f"/{copy}", "identifier": address, "new_text": old_text.replace(old, new)}
                yield ToolCall("documents_edit_content_text", arguments)


def _numbered(data: bytes, path: str) -> list[dict[str, Any]]:
    """Paragraphs with a number such as 8.2: number, text, address."""
    from journeyman.documents import open_document

    found = []
    for node in open_document(data, path).walk():
        match = re.match(r"(\d+\.\d+) ", node.text) if node.kind == "paragraph" else None
        if match:
            found.append({"clause": match[1], "text": node.text, "address": node.address})
    return found


def _place(paragraphs: Sequence[Mapping[str, Any]], pattern: str) -> tuple[str, str, str]:
    """Number and text of the paragraph that states a term, and the term as it stands there. Raises Lost."""
    for one in paragraphs:
        if match := re.search(pattern, one["text"]):
            return one["clause"], one["text"], match[1]
    raise Lost(f"no paragraph says {pattern}")


def _wrong(
    edits: Sequence[Mapping[str, Any]], paragraphs: Sequence[Mapping[str, Any]], bait: str, mark: str
) -> tuple[Wrong, ...]:
    right = [{"clause": one["clause"], "value": one["value"]} for one in edits]
    known = {row["clause"] for row in right}
    other = next(one for one in paragraphs if one["clause"] not in known)
    tried = [
        ("stale-version", right[:1], ""),
        ("swapped-entity", [{**one, "value": right[i - 1]["value"]} for i, one in enumerate(right)], ""),
        (
            "something else changed",
            [*right, {"clause": other["clause"], "value": f"{other['text']} Time matters."}],
            "",
        ),
        ("words added", [{**one, "value": f"{one['value']}, as agreed,"} for one in right], ""),
        ("one term left as drafted", right[:-1], ""),
    ]
    found = [Wrong(name, {"edits": given}, "planned edits", trap) for name, given, trap in tried]
    if bait:
        found.append(Wrong("T9:fell for the table", _caught(edits, paragraphs, bait, ""), "planned edits", "T9"))
    if mark:
        found.append(Wrong("T17:change left in", _caught(edits, paragraphs, "", mark), "planned edits", "T17"))
    return tuple(found)


def _caught(
    edits: Sequence[Mapping[str, Any]], paragraphs: Sequence[Mapping[str, Any]], bait: str, mark: str
) -> Answer:
    """The edits of somebody who takes the basket of the table (``bait``) and leaves a tracked change in (``mark``).

    Without either, of somebody who forgets the last term.
    """
    given = [{"clause": one["clause"], "value": one["value"]} for one in edits if one["clause"] != mark]
    if bait:
        basket = _place(paragraphs, TERMS["basket"][1])[0]
        given = [*(one for one in given if one["clause"] != basket), {"clause": basket, "value": bait}]
    return {"edits": given if bait or mark else given[:-1]}


def _checks(path: str, edits: Sequence[Mapping[str, Any]]) -> tuple[Check, ...]:
    planned = [{"before": one["before"], "after": one["before"].replace(one["old"], one["value"])} for one in edits]
    said = [{"value": one["value"] + one["before"].partition(one["old"])[2][:15]} for one in edits]
    return (
        Check("planned edits", "doc.edits", {"file": FILE, "original": path, "edits": planned}, weight=0.8,
              trap_ids=("T9", "T17")),
        Check("agreed terms", "doc.mentions", {"file": FILE, "facts": said}, weight=0.2, stage="intermediate",
              required=False),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], rng: random.Random) -> str:
    opener = rng.choice((
        "The buyer's first draft of the share purchase agreement departs from what was agreed.",
        f"{office.setting.company}'s seller answers the first draft of the purchase agreement today.",
        "Bring the draft share purchase agreement into line with the term sheet.",
    ))  # fmt: skip
    return f"""{opener}

Compare the draft, {ask["path"]}, with the signed term sheet (folder deals; its notes count) on these terms:
{"; ".join(ask["terms"])}.
Where the draft states another value, replace the value with its unit, and only that, by what was agreed, written as the
term sheet writes it. Leave every other word as it is, also where you would word it otherwise, and do not touch terms
that agree. A change that the other side has tracked in the draft and that was declined by mail does not count: undo it,
so that its paragraph reads as it did before.

Save the amended agreement as `artifacts/{FILE}`, clean or with tracked changes, which are read as accepted.
"""
