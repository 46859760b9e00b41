"""Checks of presentations: titles, native charts, texts, empty placeholders, shapes that leave the slide, edits."""

from __future__ import annotations

from typing import Any

from .bundle import Bundle
from .comparing import equal, normal, shown
from .outcome import Outcome
from .tables import full_text


def titles(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Titles of slides in order; others may stand between. Params: ``file``; ``titles``: texts each must contain."""
    given = [normal(slide.attributes.get("title", "")) for slide in _slides(bundle, params["file"])]
    at, missing = 0, []
    for wanted in params["titles"]:
        place = next((i for i in range(at, len(given)) if normal(wanted) in given[i]), None)
        if place is None:
            missing.append(f"no slide titled {wanted!r} where it belongs")
        else:
            at = place + 1
    return Outcome.of(0.0 if missing else 1.0, f"{params['file']}: {len(given)} slides", missing)


def series(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """A native chart with these values.

    Params: ``file``; ``series``: [{``name``?, ``values``}]; ``categories``?; ``title``?: of the slide; ``exact``?: it
    has no other series; ``tol``?.
    """
    seen = []
    for slide in _slides(bundle, params["file"]):
        if params.get("title") and normal(params["title"]) not in normal(slide.attributes.get("title", "")):
            continue
        for chart in (node for node in _below(slide) if node.attributes.get("chart") or node.kind == "chart"):
            given = [node for node in chart.children if node.kind == "series"]
            problem = _unlike(given, params)
            if not problem:
                return Outcome(1.0, f"{chart.address} shows {len(params['series'])} series")
            seen.append(f"{chart.address}: {problem}")
    return Outcome.of(0.0, f"{params['file']}: no native chart with these values", seen)


def _unlike(given: list[Any], params: dict[str, Any]) -> str:
    if params.get("exact") and len(given) != len(params["series"]):
        return f"{len(given)} series"
    for want in params["series"]:
        match = None
        for node in given:
            values = list(node.attributes.get("values") or [])
            same = len(values) == len(want["values"]) and all(
                equal(w, v, params.get("tol")) for w, v in zip(want["values"], values, strict=True)
            )
            if same and (not want.get("name") or normal(want["name"]) in normal(node.text)):
                match = node
        if match is None:
            return f"no series like {shown(want.get('name', 'the one asked for'))}"
        wanted = params.get("categories")
        if wanted and [normal(one) for one in match.attributes.get("categories") or []] != [
            normal(one) for one in wanted
        ]:
            return "other categories"
    return ""


def says(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Facts on the slide that is titled so.

    Params: ``file``; ``title``; ``facts``: expected values; ``tol``?.
    """
    from .writings import _states

    for slide in _slides(bundle, params["file"]):
        if normal(params["title"]) in normal(slide.attributes.get("title", "")):
            text = full_text(slide)
            missing = [
                f"fact {number} is not stated"
                for number, fact in enumerate(params["facts"], start=1)
                if not any(_states(line, fact, params.get("tol")) for line in text.splitlines())
            ]
            return Outcome.of(0.0 if missing else 1.0, f"{slide.address}: {len(params['facts'])} facts", missing)
    return Outcome(0.0, f"{params['file']}: no slide titled {params['title']!r}")


def tidy(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """No placeholder is left empty and nothing lies outside its slide. Params: ``file``."""
    findings = []
    document = bundle.document(params["file"])
    width, height = (float(document.metadata.get(key) or 0) for key in ("width", "height"))
    for slide in _slides(bundle, params["file"]):
        for node in _below(slide):
            text = full_text(node).strip()
            is_empty = not text and not node.children and not node.attributes.get("chart")
            if is_empty and node.attributes.get("placeholder") in ("title", "body", "subTitle", "ctrTitle", "obj"):
                findings.append(f"{node.address} is an empty placeholder")
            if normal(text).startswith(("click to add", "lorem ipsum")):
                findings.append(f"{node.address} holds a placeholder's text")
            box = node.attributes.get("box")
            if isinstance(box, list) and len(box) == 4 and width and height:
                left, top, right, bottom = box
                if left < -1 or top < -1 or right > width + 1 or bottom > height + 1:
                    findings.append(f"{node.address} leaves the slide")
    return Outcome.of(0.0 if findings else 1.0, f"{params['file']}: {len(findings)} untidy places", findings)


def shapes_changed(bundle: Bundle, params: dict[str, Any]) -> Outcome:
    """Exactly the planned shapes of a deck read otherwise.

    Params: ``file``; ``original``; ``places``: addresses of shapes, cells or series, or what begins with them.
    """
    from officedocs.diff import diff

    name, original = params["file"], params["original"]
    found = diff(bundle.originals[original], bundle.data(name), original, name)
    changed = {entry.address for entry in found.entries if entry.kind in ("input", "formula", "structure")}
    planned = set(params["places"])

    def is_of(address: str, place: str) -> bool:
        return address == place or address.startswith(f"{place}/")

    findings = [f"{one} was to change" for one in sorted(planned) if not any(is_of(a, one) for a in changed)]
    findings += [f"{one} was not to change" for one in sorted(changed) if not any(is_of(one, p) for p in planned)]
    return Outcome.of(0.0 if findings else 1.0, f"{name}: {len(changed)} places changed", findings)


def _slides(bundle: Bundle, name: str) -> list[Any]:
    return [node for node in bundle.document(name).nodes if node.kind == "slide"]


def _below(node: Any) -> list[Any]:
    found: list[Any] = []
    for child in node.children:
        found += [child, *_below(child)]
    return found
