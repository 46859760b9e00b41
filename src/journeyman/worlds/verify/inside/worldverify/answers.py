"""Checks of JSON answers and of citations: typed fields, exact sets, and places that really say what is cited."""

from __future__ import annotations

import re
from typing import Any

from .bundle import Bundle
from .comparing import equal, items_of, kind_of, normal, shown
from .outcome import Outcome
from .tables import at_path, best_table, grids_of


def shape(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The keys that were asked for, of the types that were asked for.

    Params: ``file``; ``keys``: path -> ``text``, ``number``, ``list``, ``object``, ``flag`` or ``any``.
    """
    value = bundle.json(params["file"])
    wrong = []
    for path, kind in params["keys"].items():
        got = at_path(value, path)
        if got is None or not isinstance(got, TYPES[kind]) or (kind == "number" and isinstance(got, bool)):
            wrong.append(f"{path} is {shown(got)}, {kind} was asked for")
    return Outcome.of(0.0 if wrong else 1.0, f"{params['file']}: {len(params['keys'])} keys", wrong)


TYPES: dict[str, Any] = {
    "text": str,
    "number": (int, float, str),
    "list": list,
    "object": dict,
    "flag": (bool, str),
    "any": object,
}


def fields(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Typed comparison, field by field.

    Params: ``file``; ``fields``: path -> expected value; ``tol``?; ``credit``: ``all`` or ``share``.
    """
    value = bundle.json(params["file"])
    wrong = []
    for path, want in params["fields"].items():
        got = at_path(value, path)
        if not equal(want, got, params.get("tol")):
            wrong.append(f"{path} says {shown(got)}, not the {kind_of(want)} expected")
    total = len(params["fields"])
    right = total - len(wrong)
    score = 1.0 if not wrong else right / total if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{params['file']}: {right} of {total} fields", wrong)


def members(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """An exact set, wherever it stands.

    Params: ``file``; ``path`` (JSON) or ``column`` (of a table, with ``sheet``?); ``items``: texts; ``credit``:
    ``all`` (default) or ``f1``.
    """
    wanted = {normal(one) for one in params["items"]}
    listed = [one for one in _listed(bundle, params) if one]
    given = set(listed)
    findings = [f"{one} is missing" for one in sorted(wanted - given)]
    findings += [f"{one} stands there more than once" for one in sorted(given) if listed.count(one) > 1]
    findings += [f"{shown(one)} does not belong" for one in sorted(given - wanted)]
    hits = len(wanted & given)
    f1 = 2 * hits / (len(wanted) + len(given)) if wanted or given else 1.0
    score = 1.0 if not findings else min(f1, 0.99) if params.get("credit") == "f1" else 0.0
    return Outcome.of(score, f"{hits} of {len(wanted)} members, {len(given - wanted)} too many", findings)


def _listed(bundle: Bundle, params: dict[str, Any]) -> list[str]:
    if "column" in params:
        column = {"name": params["column"], "aliases": params.get("aliases", ())}
        found = best_table(list(grids_of(bundle, params)), [column])
        return [normal(row[0]) for row in found[0] if row[0] is not None] if found else []
    value = at_path(bundle.json(params["file"]), params.get("path", ""))
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        key = params.get("member", "id")
        return [normal(one.get(key, "")) for one in value]
    return items_of(value)


def cites(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Each hop is backed by a place that says it, and nothing else is cited.

    Params: ``file``; ``path`` (list of objects or texts in JSON) or ``columns``: [file column, place column] of a
    table; ``hops``: list of lists of accepted ``{"path", "locator"}``; ``level``: ``file`` or ``place`` (default);
    ``spare``: how many other citations are allowed, 3 by default; ``credit``: ``all`` or ``share``.
    """
    given = _citations(bundle, params)
    level = params.get("level", "place")
    used: set[int] = set()
    missing = []
    for number, accepted in enumerate(params["hops"], start=1):
        hit = next((i for i, one in enumerate(given) if any(backs(one, place, level) for place in accepted)), None)
        if hit is None:
            missing.append(f"hop {number} is not backed by a place that says it")
        else:
            used.update(i for i, one in enumerate(given) if any(backs(one, place, level) for place in accepted))
    spare = len(given) - len(used)
    total = len(params["hops"])
    share = (total - len(missing)) / total
    if spare > params.get("spare", 3):
        missing.append(f"{spare} citations that back nothing")
        share = 0.0
    score = 1.0 if not missing else share if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{total - len(missing)} of {total} hops cited", missing)


def _citations(bundle: Bundle, params: dict[str, Any]) -> list[tuple[str, str]]:
    """(path, place) of everything that is cited; a text is split at its last ``#`` or `` @ ``."""
    if "columns" in params:
        found = best_table(list(grids_of(bundle, params)), [{"name": name} for name in params["columns"]])
        rows = found[0] if found else []
        return [(cited_path(row[0]), cited_place(row[1] if len(row) > 1 else "")) for row in rows if row[0]]
    value = at_path(bundle.json(params["file"]), params.get("path", "citations"))
    cited: list[tuple[str, str]] = []
    for one in value if isinstance(value, list) else []:
        if isinstance(one, dict):
            cited.append(
                (cited_path(one.get("file") or one.get("path")), cited_place(one.get("place") or one.get("locator")))
            )
        elif isinstance(one, str):
            file, _, place = re.sub(r"\s+@\s+", "#", one).rpartition("#")
            cited.append((cited_path(file or place), cited_place(place if file else "")))
    return cited


def cited_path(value: Any) -> str:
    """A path as it compares, from the top of the world."""
    return str(value or "").strip().removeprefix("/ws/").removeprefix("/filesystem/").lstrip("/").lower()


def cited_place(value: Any) -> str:
    """An address as it compares: pages and slides in any spelling."""
    text = str(value or "").strip().strip("<>").replace("$", "").replace("'", "")
    page = re.fullmatch(r"(?:page|p\.?|pg\.?)\s*(\d+)", text, re.IGNORECASE)
    slide = re.fullmatch(r"slide\s*(\d+)", text, re.IGNORECASE)
    text = f"p{page[1]}" if page else f"s{slide[1]}" if slide else text
    return text.removeprefix("msg:").removeprefix("para:").lower()


def backs(cited: tuple[str, str], accepted: dict[str, str], level: str) -> bool:
    """The same file and the same place, or a place around it: the page of a box, the sheet of a cell."""
    path, place = cited
    if (
        path != cited_path(accepted["path"])
        and path.rpartition("/")[2] != cited_path(accepted["path"]).rpartition("/")[2]
    ):
        return False
    if level == "file":
        return True
    want = cited_place(accepted.get("locator"))
    if not want or place == want:
        return True
    around = re.split(r"[@/]", want)[0]
    return bool(place) and (place == around or place.rstrip("/") == want.split("/body")[0] or _same_sheet(place, want))


def _same_sheet(place: str, want: str) -> bool:
    """A range that holds the cell."""
    if "!" not in place or "!" not in want:
        return False
    try:
        from officedocs.errors import UnreadableDocument
        from officedocs.xlsx.address import parse

        return bool(parse(place, "").covers(parse(want, ""))) and ":" in place
    except (UnreadableDocument, ValueError):
        return False
