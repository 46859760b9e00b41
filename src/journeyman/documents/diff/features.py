"""What a sheet has beside cells: rules, notes, floating things, hidden rows, widths; and the names of the workbook."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..xlsx.address import area_of, quoted
from ..xlsx.book import Book, Sheet
from ..xlsx.drawings import Floating
from ..xlsx.formula import normal
from .align import runs
from .cells import block_address
from .entry import OPAQUE, STRUCTURE, STYLE, Entry
from .renumber import Renumbering, SheetMap

Facts = dict[str, list[Any]]

NOISE_NAMES = ("_xlnm._FilterDatabase",)
"""Names that writers derive from an auto filter."""

WIDTH_NOISE = 0.75
"""Column widths closer than this, in characters, look alike; writers round them to the font's pixels."""

COLUMNS_READ = 1_024
"""Column looks are compared this far to the right."""


def compare_features(a: Sheet, b: Sheet, place: SheetMap, renumbering: Renumbering) -> Iterator[Entry]:
    """Entries of one sheet, each with its address in the second workbook."""
    here = quoted(b.name)

    def moved(reference: str) -> str:
        return " ".join(sorted(_moved(one, a.name, place) for one in reference.split()))

    def formula(text: str) -> str:
        return normal(renumbering.formula(text, a.name), b.name)

    def plain(text: str) -> str:
        return normal(text, b.name)

    back = SheetMap(a.name, place.rows.inverse(), place.columns.inverse())
    known = {one for text in _ranges(a) for one in text.split()}

    def same(reference: str) -> str:
        found = []
        for one in reference.split():
            old = one if place.is_identity else _moved(one, b.name, back)
            found.append(_moved(old, a.name, place) if old != one and old in known else _plain(one))
        return " ".join(sorted(found))

    yield from _items("merged cells", STRUCTURE, _listed(a.merged, moved), _listed(b.merged, same), here)
    comments_a, comments_b = _comments(a, moved), _comments(b, same)
    yield from _items("comment", STRUCTURE, comments_a, comments_b, here, "/comment")
    yield from _items(
        "validation",
        STRUCTURE,
        _rules(a.validations, moved, formula),
        _rules(b.validations, same, plain),
        here,
        "/validation",
    )
    yield from _items(
        "conditional format", STYLE, _rules(a.formats, moved, formula), _rules(b.formats, same, plain), here, "/format"
    )
    yield from _items(
        "link",
        STRUCTURE,
        {moved(k): [v] for k, v in a.links.items()},
        {same(k): [v] for k, v in b.links.items()},
        here,
        "/link",
    )
    tables_a = {name: [{**facts, "range": moved(facts["range"])}] for name, facts in a.tables.items()}
    tables_b = {name: [{**facts, "range": same(facts["range"])}] for name, facts in b.tables.items()}
    yield from _items("table", STRUCTURE, tables_a, tables_b, here, "", "table:")
    if moved(a.filtered) != same(b.filtered) and a.filtered and b.filtered:
        yield Entry(STRUCTURE, "filter range", f"sheet:{b.name}/autoFilter", a.filtered, b.filtered)
    yield from _floating(a, b, here, moved, formula, plain)
    yield from _lines(a, b, place)
    yield from _settings(a, b)


def _ranges(sheet: Sheet) -> list[str]:
    rules = [rule["range"] for rule in (*sheet.validations, *sheet.formats, *sheet.tables.values())]
    return [sheet.filtered, *sheet.merged, *sheet.comments, *sheet.links, *rules]


def _moved(reference: str, sheet: str, place: SheetMap) -> str:
    try:
        area = place.area(area_of(reference, sheet))
    except ValueError:
        return reference
    return area.local() if area else f"{reference} (deleted)"


def _plain(reference: str) -> str:
    try:
        return area_of(reference, "").local()
    except ValueError:
        return reference


def _listed(references: list[str], move: Callable[[str], str]) -> Facts:
    return {move(one): [True] for one in references}


def _comments(sheet: Sheet, move: Callable[[str], str]) -> Facts:
    found: Facts = {}
    for place, comments in sheet.comments.items():
        found[move(place)] = [f"{one['author']}: {one['text']}" if one["author"] else one["text"] for one in comments]
    return found


def _rules(rules: list[dict[str, Any]], move: Callable[[str], str], formula: Callable[[str], str]) -> Facts:
    found: Facts = {}
    for rule in rules:
        facts = {key: value for key, value in rule.items() if key != "range"}
        for key in ("formula1", "formula2"):
            if key in facts:
                facts[key] = formula(facts[key])
        if "formulas" in facts:
            facts["formulas"] = [formula(one) for one in facts["formulas"]]
        found.setdefault(move(rule["range"]), []).append(facts)
    return found


def _items(what: str, kind: str, a: Facts, b: Facts, here: str, tail: str = "", head: str = "") -> Iterator[Entry]:
    """One entry per address and fact that differs; the same facts at one other address are one move."""
    gone = {key: facts for key, facts in a.items() if key not in b}
    come = {key: facts for key, facts in b.items() if key not in a}
    for old, facts in list(gone.items()):
        twin = next((new for new, other in come.items() if _key(other) == _key(facts)), None)
        if twin is not None and facts != [True]:
            word = "moved" if not head else "renamed"
            yield Entry(kind, f"{what} {word}", f"{here}!{head}{twin}{tail}", old, twin, f"{here}!{head}{old}{tail}")
            del gone[old], come[twin]
    for key, facts in gone.items():
        for fact in facts:
            yield Entry(kind, f"{what} removed", f"{here}!{head}{key}{tail}", fact, None)
    for key, facts in come.items():
        for fact in facts:
            yield Entry(kind, f"{what} added", f"{here}!{head}{key}{tail}", None, fact)
    for key in a.keys() & b.keys():
        one, two = _minus(a[key], b[key]), _minus(b[key], a[key])
        for n in range(max(len(one), len(two))):
            before, after = (one[n] if n < len(one) else None), (two[n] if n < len(two) else None)
            word = "changed" if before is not None and after is not None else "added" if before is None else "removed"
            yield Entry(kind, f"{what} {word}", f"{here}!{head}{key}{tail}", before, after)


def _key(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)


def _minus(one: list[Any], other: list[Any]) -> list[Any]:
    rest = [_key(fact) for fact in other]
    found = []
    for fact in one:
        if _key(fact) in rest:
            rest.remove(_key(fact))
        else:
            found.append(fact)
    return found


def _floating(
    a: Sheet,
    b: Sheet,
    here: str,
    move: Callable[[str], str],
    formula: Callable[[str], str],
    plain: Callable[[str], str],
) -> Iterator[Entry]:
    for kind in ("chart", "image", "shape"):
        first = [(move(one.anchor), _facts(one, formula)) for one in a.floating if one.kind == kind]
        second = [
            (one.anchor, _facts(one, plain), n) for n, one in enumerate((o for o in b.floating if o.kind == kind), 1)
        ]
        for step in (lambda x, y: x == y[:2], lambda x, y: x[1] == y[1], lambda x, y: x[0] == y[0], lambda x, y: True):
            for one in list(first):
                twin = next((other for other in second if step(one, other)), None)
                if twin is None or (step(("", None), ("", None)) and len(first) != len(second)):
                    continue
                first.remove(one)
                second.remove(twin)
                where = f"{here}!{kind}:{twin[2]}"
                if one[1] != twin[1]:
                    is_part = kind == "image"
                    yield Entry(OPAQUE if is_part else STRUCTURE, f"{kind} changed", where, one[1], twin[1])
                elif one[0] != twin[0]:
                    yield Entry(STRUCTURE, f"{kind} moved", where, one[0], twin[0])
        for anchor, facts in first:
            yield Entry(STRUCTURE, f"{kind} removed", f"{here}!{kind}@{anchor}", facts, None)
        for anchor, facts, _ in second:
            yield Entry(STRUCTURE, f"{kind} added", f"{here}!{kind}@{anchor}", None, facts)


def _facts(one: Floating, formula: Callable[[str], str]) -> dict[str, Any]:
    def titled(text: str) -> str:
        return f"={formula(text[1:])}" if text.startswith("=") else text

    facts = dict(one.facts)
    if "title" in facts:
        facts["title"] = titled(facts["title"])
    if "axes" in facts:
        facts["axes"] = [titled(text) for text in facts["axes"]]
    if "series" in facts:
        facts["series"] = [
            {key: formula(text) if key != "name" or "!" in text else text for key, text in series.items()}
            for series in facts["series"]
        ]
    return facts


def _lines(a: Sheet, b: Sheet, place: SheetMap) -> Iterator[Entry]:
    """Hidden rows and columns, heights, widths."""
    was = {row for old in a.hidden_rows if (row := place.rows.point(old))}
    fresh = b.hidden_rows - set(place.rows.inserted)
    for word, rows in (("hidden", fresh - was), ("shown", was - fresh)):
        for first, last in runs(sorted(rows)):
            state = (False, True) if word == "hidden" else (True, False)
            yield Entry(STRUCTURE, f"row {word}", block_address(b.name, first, last, True), *state)
    old_heights = {row: height for old, height in a.heights.items() if (row := place.rows.point(old))}
    for row in sorted(
        old_heights.keys() & b.heights.keys() | (b.custom_heights | _custom(a, place)) - set(place.rows.inserted)
    ):
        one, two = old_heights.get(row), b.heights.get(row)
        if one != two and (one is None or two is None or abs(one - two) > 0.5):
            yield Entry(STYLE, "row height", block_address(b.name, row, row, True), one, two)
    columns_a = {new: facts for old, facts in _columns(a).items() if (new := place.columns.point(old))}
    columns_b = {column: facts for column, facts in _columns(b).items() if column not in set(place.columns.inserted)}
    changed: dict[tuple[Any, Any], list[int]] = {}
    toggled: dict[bool, list[int]] = {True: [], False: []}
    for column in sorted(columns_a.keys() | columns_b.keys()):
        (width_a, hidden_a), (width_b, hidden_b) = (
            columns_a.get(column, (None, False)),
            columns_b.get(column, (None, False)),
        )
        if hidden_a != hidden_b:
            toggled[hidden_b].append(column)
        elif not hidden_a and abs((width_a or a.default_width) - (width_b or b.default_width)) > WIDTH_NOISE:
            changed.setdefault((width_a, width_b), []).append(column)
    for is_hidden, columns in toggled.items():
        for first, last in runs(columns):
            what = "column hidden" if is_hidden else "column shown"
            yield Entry(STRUCTURE, what, block_address(b.name, first, last, False), not is_hidden, is_hidden)
    for (before, after), columns in changed.items():
        for first, last in runs(columns):
            yield Entry(STYLE, "column width", block_address(b.name, first, last, False), before, after)


def _custom(a: Sheet, place: SheetMap) -> set[int]:
    return {row for old in a.custom_heights if (row := place.rows.point(old))}


def _columns(sheet: Sheet) -> dict[int, tuple[float | None, bool]]:
    return {
        column: (width, is_hidden)
        for first, last, width, is_hidden, _ in sheet.columns
        for column in range(first, min(last, COLUMNS_READ) + 1)
    }


def _settings(a: Sheet, b: Sheet) -> Iterator[Entry]:
    here = f"sheet:{b.name}"
    if a.state != b.state:
        yield Entry(STRUCTURE, "sheet state", here, a.state, b.state)
    if a.panes != b.panes:
        yield Entry(STYLE, "frozen panes", here, a.panes or None, b.panes or None)
    for word in sorted(a.settings.keys() | b.settings.keys()):
        if a.settings.get(word) != b.settings.get(word):
            kind = STYLE if word in ("tabColor", "headerFooter") else STRUCTURE
            yield Entry(kind, word, f"{here}/{word}", a.settings.get(word), b.settings.get(word))
    gone, come = _minus(list(a.extensions), list(b.extensions)), _minus(list(b.extensions), list(a.extensions))
    for n in range(max(len(gone), len(come))):
        before, after = (gone[n] if n < len(gone) else None), (come[n] if n < len(come) else None)
        yield Entry(OPAQUE, "extension", f"{here}/extension", before, after)


def compare_names(a: Book, b: Book, renumbering: Renumbering) -> Iterator[Entry]:
    """Defined names; one that only changed its own name is one entry."""
    first = _name_facts(a.names, lambda text, home: renumbering.formula(text, home), renumbering)
    second = _name_facts(b.names, lambda text, home: text, None)
    for (name, scope), facts in list(first.items()):
        new = renumbering.names.get(name.upper())
        if new is not None and (new, scope) in second and (name, scope) not in second:
            yield Entry(STRUCTURE, "name renamed", _name(new, scope), name, new, _name(name, scope))
            if facts != second[new, scope]:
                yield Entry(STRUCTURE, "name changed", _name(new, scope), facts, second[new, scope])
            del first[name, scope], second[new, scope]
    for key in sorted(first.keys() | second.keys()):
        one, two = first.get(key), second.get(key)
        if one != two:
            what = "name added" if one is None else "name removed" if two is None else "name changed"
            yield Entry(STRUCTURE, what, _name(*key), one, two)


def _name_facts(
    names: Mapping[tuple[str, str], str], move: Callable[[str, str], str], renumbering: Renumbering | None
) -> dict[tuple[str, str], str]:
    found = {}
    for (name, scope), formula in names.items():
        if name not in NOISE_NAMES:
            home = scope
            if renumbering is not None and scope.lower() in renumbering.sheets:
                home = renumbering.sheets[scope.lower()].name
            text = normal(move(formula, scope))
            if name.startswith("_xlnm.Print_"):  # a union whose order has no meaning
                text = ",".join(sorted(text.split(",")))
            found[name, home] = f"={text}"
    return found


def _name(name: str, scope: str) -> str:
    return f"name:{quoted(scope)}!{name}" if scope else f"name:{name}"


def renamed_names(a: Book, b: Book) -> dict[str, str]:
    """Names that vanished while another of the same scope and formula appeared: upper case -> new."""
    gone = {key: normal(text) for key, text in a.names.items() if key not in b.names}
    come = {key: normal(text) for key, text in b.names.items() if key not in a.names}
    found = {}
    for (name, scope), text in gone.items():
        twins = [new for (new, other), formula in come.items() if other == scope and formula == text]
        if len(twins) == 1 and sum(1 for formula in gone.values() if formula == text) == 1:
            found[name.upper()] = twins[0]
    return found
