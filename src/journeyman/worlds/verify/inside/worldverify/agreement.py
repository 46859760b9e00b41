"""Checks across deliverables and across sections of one: two places that must say the same."""

from __future__ import annotations

from typing import Any

from .bundle import Bundle
from .comparing import equal, number_of, shown
from .outcome import Outcome
from .tables import at_path, best_table, grids_of


def agree(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Pairs of places with one value.

    Params: ``pairs``: [{``a``, ``b``}]; a place is ``{"file", "cell"}``, ``{"file", "path"}`` or
    ``{"file", "columns": [key, value], "row": key}``; ``tol``?. Two empty places do not agree.
    """
    wrong = []
    for pair in params["pairs"]:
        a, b = value_at(bundle, pair["a"]), value_at(bundle, pair["b"])
        expected = number_of(a) if number_of(a) is not None else a
        if a is None or not equal(expected, b, params.get("tol")):
            wrong.append(f"{_name(pair['a'])} says {shown(a)}, {_name(pair['b'])} says {shown(b)}")
    total = len(params["pairs"])
    return Outcome.of(0.0 if wrong else 1.0, f"{total - len(wrong)} of {total} pairs agree", wrong)


def value_at(bundle: Bundle, place: dict[str, Any]) -> Any:
    """What stands at a place; None for nothing."""
    if "cell" in place:
        return bundle.workbook(place["file"]).value(place["cell"])
    if "columns" in place:
        found = best_table(list(grids_of(bundle, place)), [{"name": name} for name in place["columns"]])
        rows = found[0] if found else []
        return next((row[1] for row in rows if equal(place["row"], row[0])), None)
    return at_path(bundle.json(place["file"]), place["path"])


def _name(place: dict[str, Any]) -> str:
    return f"{place['file']} {place.get('cell') or place.get('path') or place.get('row')}"


def present(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Every file that was asked for is there and can be opened. Params: ``files``."""
    for name in params["files"]:
        suffix = name.rpartition(".")[2].lower()
        if suffix == "json":
            bundle.json(name)
        elif suffix in ("xlsx", "xlsm"):
            bundle.workbook(name)
        elif suffix not in ("py", "txt", "md"):
            bundle.document(name)
        else:
            bundle.data(name)
    return Outcome(1.0, f"{len(params['files'])} files can be opened")
