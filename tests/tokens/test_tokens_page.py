"""The tables of docs/tokens.md say what the families say."""

from __future__ import annotations

from pathlib import Path

from journeyman.tokens.malformed import DEFAULT_POLICY
from journeyman.tokens.renderers import FAMILIES

PAGE = Path(__file__).parents[2] / "docs" / "tokens.md"


def families_table() -> str:
    rows = [
        f"| `{f.name}` | {f.models} | {f.call_style} | {f.text_checked} | "
        f"{f.vocabulary_checked or 'none: ids unverified'} |"
        for f in FAMILIES.values()
    ]
    head = [
        "| family | models | calls | text and stand-in ids checked against | real vocabulary |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows])


def deviations_list() -> str:
    lines = [f"- `{f.name}`: {text}" for f in FAMILIES.values() for text in f.deviations]
    exact = ", ".join(f"`{f.name}`" for f in FAMILIES.values() if not f.deviations)
    return "\n".join([*lines, f"- {exact}: none known."])


def block(name: str) -> str:
    return PAGE.read_text(encoding="utf-8").split(f"<!-- {name} -->\n")[1].split(f"\n<!-- end {name} -->")[0]


def test_the_table_of_families_is_the_code() -> None:
    assert block("families") == families_table()


def test_every_known_deviation_is_listed() -> None:
    assert block("deviations") == deviations_list()


def test_every_class_of_malformed_call_has_a_row() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [kind for kind in DEFAULT_POLICY if f"`{kind}`" not in text] == []
