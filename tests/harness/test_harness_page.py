"""docs/harness.md says what the code does: names, limits and policies are read back from its tables."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

from journeyman.harness import SPECS, Budget
from journeyman.harness.code.schemas import SCHEMAS
from journeyman.harness.toolbelt.belt import MAX_TOOLS, META
from journeyman.tokens.malformed import DEFAULT_POLICY

PAGE = (Path(__file__).parents[2] / "docs" / "harness.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[list[str]]:
    """Cells of the table rows below a heading."""
    section = PAGE.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in lines]


def test_every_spec_has_its_row() -> None:
    named = dict(re.findall(r"^\| `([\w-]+)` \| `(\w+)` \|", PAGE, re.MULTILINE))
    assert named == {name: spec.loop for name, spec in SPECS.items()}


def test_every_class_of_malformed_call_has_its_default_policy() -> None:
    assert {row[0]: row[1] for row in rows("Malformed calls")[1:]} == DEFAULT_POLICY
    assert all(dict(spec.malformed) == DEFAULT_POLICY for spec in SPECS.values())


def test_every_budget_has_its_default() -> None:
    told = {name: row[1] for row in rows("Budgets") for name in re.findall(r"`(\w+)`", row[0])}
    for field in fields(Budget):
        value = field.default
        assert told[field.name] == (
            "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        )


def test_the_tools_and_arguments_are_those_of_the_schemas() -> None:
    told = {row[0]: row[1] for row in rows("code") if row[0] in SCHEMAS}
    assert told.keys() == SCHEMAS.keys()
    for name, schema in SCHEMAS.items():
        text = re.sub(r"\[.*?\]|\(.*?\)", "", told[name])
        named = {word.strip().rstrip("*"): word.strip().endswith("*") for word in text.split(",")}
        assert named == {key: key in schema["required"] for key in schema["properties"]}, name
    assert all(f"`{name}(" in PAGE for name in META)
    assert f"At most {MAX_TOOLS} tools" in PAGE


def test_the_defaults_named_in_the_text_are_those_of_a_spec() -> None:
    spec = SPECS["react"]
    for text in (
        f"`summary_tokens` ({spec.summary_tokens})",
        f"`nudge_share` ({spec.nudge_share:g})",
        f"`max_result_tokens`, {spec.max_result_tokens};",
        f"at most {spec.max_fresh_contexts} times (`max_fresh_contexts`)",
        f"`tool_deadline_s` {spec.tool_deadline_s:g} s",
        f"`code_exec` {spec.deadline_s('code_exec'):g} s",
        f"up to {SPECS['code'].deadline_s('bash'):g} s",
        f"at most {spec.max_regenerations} times a turn",
    ):
        assert text in PAGE.replace("\n", " "), text
    assert not spec.nudge
