"""Checks that execute an analysis again: what was reported has to come out of what was delivered."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

from .bundle import Bundle, MalformedDeliverable
from .comparing import equal, kind_of, normal, number_of, shown
from .outcome import Outcome
from .programs import CASE_S, Runner
from .tables import at_path, best_table


def reproduces(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """The delivered program, run on the delivered data, prints what was reported, and both are right.

    Params: ``entry``; ``args``; ``data``: delivered csv files that it reads; ``file``: delivered JSON; ``fields``: path
    -> expected value, in both; ``tol``?; ``case_s``?.
    """
    reported = bundle.json(params["file"])
    tol = params.get("tol")
    said = {path: at_path(reported, path) for path in params["fields"]}
    wrong = [
        f"{path} is reported as {shown(said[path])}, not the {kind_of(want)} expected"
        for path, want in params["fields"].items()
        if not equal(want, said[path], tol)
    ]
    if not wrong:  # what is reported wrongly need not come out again
        files = {name: as_csv(bundle, name) for name in params["data"]}
        printed, problem = run_json(bundle, params, files)
        wrong += [problem] if problem else []
        got = {path: at_path(printed, path) for path in params["fields"]} if not problem else {}
        wrong += [
            f"{path} is reported as {shown(said[path])}, the program prints {shown(value)}"
            for path, value in got.items()
            if not equal(params["fields"][path], value, tol)
        ]
    return Outcome.of(0.0 if wrong else 1.0, f"{len(said)} values, executed again", wrong)


def records(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Exactly these records of a delivered csv file, in any order: told apart by a word and a number.

    Params: ``file``; ``columns``: [word, number, further numbers ...]; ``rows``: expected, in that order; ``tol``: of
    the further numbers, one each.
    """
    found = best_table([(list(bundle.rows(params["file"])), params["file"], 1900)],
                       [{"name": name} for name in params["columns"]])  # fmt: skip
    if found is None:
        return Outcome(0.0, f"{params['file']}: no table with the columns {', '.join(params['columns'])}")
    given: dict[tuple[str, float], list[float]] = {}
    wrong = []
    for row in found[0]:
        numbers = [_plain_number(value) for value in row[1:]]
        if None in numbers:
            wrong.append(f"{shown(row)} is no record")
            continue
        key = normal(row[0]), round(numbers[0] or 0.0, 6)
        wrong += [f"{key[0]} / {key[1]:g} stands there more than once"] if key in given else []
        given[key] = [number or 0.0 for number in numbers[1:]]
    wanted = {(normal(row[0]), round(float(row[1]), 6)): row[2:] for row in params["rows"]}
    wrong += [f"no record {word} / {number:g}" for word, number in sorted(wanted.keys() - given.keys())]
    wrong += [f"record {word} / {number:g} does not belong" for word, number in sorted(given.keys() - wanted.keys())]
    for key in sorted(wanted.keys() & given.keys()):
        if any(abs(a - b) > tol + 1e-9 for a, b, tol in zip(wanted[key], given[key], params["tol"], strict=True)):
            wrong.append(f"{key[0]} / {key[1]:g} has other values")
    return Outcome.of(0.0 if wrong else 1.0, f"{len(given)} records", wrong)


def _plain_number(value: Any) -> float | None:
    try:
        return number_of(float(value))
    except (TypeError, ValueError):
        return number_of(value)


def as_csv(bundle: Bundle, name: str) -> str:
    """A delivered csv file with commas and line feeds, however it was written."""
    made = io.StringIO()
    csv.writer(made, lineterminator="\n").writerows(bundle.rows(name))
    return made.getvalue()


def run_text(bundle: Bundle, params: dict[str, Any], files: dict[str, str], args: list[str]) -> tuple[str, str]:
    """What the delivered program prints, and why it did not."""
    if not params["entry"].endswith(".py"):
        raise MalformedDeliverable(f"{params['entry']} is no program")
    bundle.data(params["entry"])
    sources = {name: data.decode("utf-8", "replace") for name, data in bundle.files.items() if name.endswith(".py")}
    runner = bundle.kept("runner", lambda: Runner(sources))
    limit_s = float(params.get("case_s", CASE_S))
    done = runner.answer({"entry": params["entry"], "files": files, "args": args}, limit_s)
    if done is None:
        return "", "the program ended what ran it"
    status, out, err = done
    if status is None:
        return "", f"no end within {limit_s:g} s"
    if status != 0:
        last = err.decode("utf-8", "replace").strip().splitlines()[-1:]
        return "", f"status {status}" + (f": {last[0][:120]}" if last else "")
    return out.decode("utf-8", "replace"), ""


def run_json(bundle: Bundle, params: dict[str, Any], files: dict[str, str]) -> tuple[Any, str]:
    """The JSON value that the delivered program prints, and why there is none."""
    text, problem = run_text(bundle, params, files, [str(one) for one in params.get("args", [])])
    if problem:
        return None, problem
    try:
        return json.loads(text), ""
    except ValueError:
        return None, f"it prints {shown(text)}, JSON was asked for"
