"""Checks of workbooks: cells, formulas that follow their inputs, errors, what else was changed, charts."""

from __future__ import annotations

from typing import Any

from .bundle import Bundle
from .comparing import equal, kind_of, number_of, shown
from .outcome import Outcome


def cells(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Values of cells after recalculation.

    Params: ``file``; ``cells``: address -> expected value; ``tol``?; ``credit``: ``all`` (default) or ``share``.
    """
    book = bundle.workbook(params["file"])
    wrong = []
    for address, want in params["cells"].items():
        got = book.value(address)
        if not equal(want, got, params.get("tol"), book.epoch):
            wrong.append(f"{address} says {shown(got)}, not the {kind_of(want)} expected")
    total = len(params["cells"])
    right = total - len(wrong)
    score = 1.0 if not wrong else right / total if params.get("credit") == "share" else 0.0
    return Outcome.of(score, f"{params['file']}: {right} of {total} cells", wrong)


def follows(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Perturbation: other inputs, everything computed anew, outputs as the truth computes them. Kills typed-in results.

    Params: ``file``; ``trials``: [{``set``: address -> number, ``expect``: address -> number}]; ``tol``?.
    """
    book = bundle.workbook(params["file"])
    wrong = []
    total = 0
    for trial in params["trials"]:
        try:
            found = book.perturbed(trial["set"], list(trial["expect"]))
        except ValueError as error:
            return Outcome(0.0, f"{params['file']} cannot be computed: {str(error)[:200]}")
        total += len(trial["expect"])
        moved = ", ".join(trial["set"])
        wrong += [
            f"{address} says {shown(found[address])} after {moved} changed"
            for address, want in trial["expect"].items()
            if not equal(want, found[address], params.get("tol"), book.epoch)
        ]
    return Outcome.of(0.0 if wrong else 1.0, f"{params['file']}: {total - len(wrong)} of {total} outputs follow", wrong)


def formulas(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Cells that must be calculated, not typed.

    Params: ``file``; ``cells``: addresses, or ``range``; ``share``: least part that holds a formula, 1 by default.
    """
    book = bundle.workbook(params["file"])
    addresses = params.get("cells") or [cell[0] for cell in book.cells(params["range"])]
    typed = [address for address in addresses if not book.formula(address)]
    share = 1 - len(typed) / len(addresses)
    findings = [f"{address} holds no formula" for address in typed]
    is_enough = share >= params.get("share", 1.0)
    return Outcome.of(1.0 if is_enough else 0.0, f"{share:.0%} of {len(addresses)} cells hold formulas", findings)


def formula_share(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Part of a sheet's numbers that formulas give, where the place of each is free.

    Params: ``file``; ``sheet``?; ``least``: share of numeric cells, default 0.2; ``count``: least number of formulas.
    """
    book = bundle.workbook(params["file"])
    sheets = [params["sheet"]] if params.get("sheet") and book.sheet(params["sheet"]) else book.sheets
    numbers = calculated = 0
    for name in sheets:
        for (row, column), cell in book.sheet(name).cells.items():
            value = book.at(name, row, column)
            if cell.formula and number_of(value) is not None:
                calculated += 1
            elif cell.kind == "n":
                numbers += 1
    share = calculated / max(1, calculated + numbers)
    is_enough = share >= params.get("least", 0.2) and calculated >= params.get("count", 1)
    words = f"{params['file']}: {calculated} numbers are calculated, {numbers} typed"
    return Outcome.when(is_enough, words, f"{words}; fewer than asked for are calculated")


def no_errors(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """No cell shows an error. Params: ``file``."""
    found = bundle.workbook(params["file"]).errors()
    return Outcome.of(0.0 if found else 1.0, f"{params['file']}: {len(found)} cells show an error", found)


def untouched(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Nothing outside the allowed region changed; any format that can be compared.

    Params: ``file``; ``original``: name among the truth's files; ``allowed``: addresses and ranges;
    ``kinds``?: kinds of difference that count, default input, formula, structure.
    """
    from officedocs.diff import diff

    name = params["file"]
    original = params.get("original", name)
    found = diff(bundle.originals[original], bundle.data(name), original, name, allowed=params["allowed"])
    counted = params.get("kinds", ["input", "formula", "structure"])
    bad = [entry for entry in found.collateral if entry.kind in counted]
    findings = [f"{entry.address}: {entry.what} ({entry.kind})" for entry in bad]
    return Outcome.of(0.0 if bad else 1.0, f"{name}: {len(bad)} changes outside what was asked", findings)


def changed_set(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Exactly the planned places changed: the set of addresses with a difference of these kinds.

    Params: ``file``; ``original``; ``places``: addresses; ``kinds``: default input, formula.
    """
    from officedocs.diff import diff

    name = params["file"]
    original = params.get("original", name)
    found = diff(bundle.originals[original], bundle.data(name), original, name)
    kinds = params.get("kinds", ["input", "formula"])
    changed = {entry.address for entry in found.entries if entry.kind in kinds}
    planned = set(params["places"])
    findings = [f"{one} was to change and did not" for one in sorted(planned - changed)]
    findings += [f"{one} changed and was not to" for one in sorted(changed - planned)]
    return Outcome.of(0.0 if findings else 1.0, f"{name}: {len(changed & planned)} of {len(planned)} places", findings)


def chart(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A native chart of a workbook that shows these ranges.

    Params: ``file``; ``kinds``?: accepted kinds; ``ranges``: references of series values, any order.
    """
    document = bundle.document(params["file"])
    wanted = {_plain(one) for one in params["ranges"]}
    seen = []
    for node in document.walk():
        if node.kind != "chart":
            continue
        series = node.attributes.get("series") or []
        ranges = {
            _plain(str(one.get("values") or one.get("values_range") or "")) for one in series if isinstance(one, dict)
        }
        seen.append(f"{node.address} shows {', '.join(sorted(ranges)) or 'nothing'}")
        if wanted <= ranges:
            return Outcome(1.0, f"{node.address} shows {len(wanted)} ranges")
    return Outcome.of(0.0, f"{params['file']}: no chart of {', '.join(sorted(wanted))}", seen)


def _plain(reference: str) -> str:
    return reference.replace("$", "").replace("'", "").lstrip("=").lower()
