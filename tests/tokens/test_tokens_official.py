"""Model directories: their chat template, its dates, the family it shows, and whether a renderer is right for it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.tokens.chat_template import CHAT_TEMPLATE
from journeyman.tokens.model_audit import audit_model
from journeyman.tokens.official import TemplateDate, read_template, render, template_dates
from journeyman.tokens.renderers import FAMILIES
from journeyman.tokens.renderers.detection import SIGNS, detect, family_of

HERE = Path(__file__).parent / "templates"
HI = [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("template", "found"),
    [
        ("{{ 'Today is ' + strftime_now('%d %b %Y') }}", [("wall clock", "strftime_now('%d %b %Y')", 1)]),
        ("a\n{{- 'Today is 2025-07-01.' }}", [("fixed", "2025-07-01", 2)]),
        ('{%- set d = "26 Jul 2024" %}', [("fixed", "26 Jul 2024", 1)]),
        ("Current date: July 4th, 2025", [("fixed", "July 4th, 2025", 1)]),
        ("今天是2025年7月1日", [("fixed", "2025年7月1日", 1)]),
        ("Cutting Knowledge Date: December 2023", []),
        ("{# written 2025-07-01 #}ids 2507, 1.2.3", []),
    ],
)
def test_a_date_that_a_template_states_of_its_own_accord_is_found(
    template: str, found: list[tuple[str, str, int]]
) -> None:
    assert [(d.kind, d.text, d.line) for d in template_dates(template)] == found


def test_a_template_that_asks_for_now_gets_the_trials_day() -> None:
    assert render("{{ strftime_now('%Y-%m-%d') }}", HI, today=date(1999, 1, 2)) == "1999-01-02"


def test_a_template_that_refuses_or_is_broken_is_an_input_error() -> None:
    with pytest.raises(InputError, match="no system turn here"):
        render("{{ raise_exception('no system turn here') }}", HI, today=date(1999, 1, 2))
    with pytest.raises(InputError, match="cannot be rendered"):
        render("{% if %}", HI, today=date(1999, 1, 2))


def test_a_template_is_read_from_its_file_or_from_the_config_in_either_form(tmp_path: Path) -> None:
    config = tmp_path / "tokenizer_config.json"
    config.write_text(json.dumps({"chat_template": "one"}))
    assert read_template(tmp_path) == "one"
    config.write_text(json.dumps({"chat_template": [{"name": "default", "template": "two"}]}))
    assert read_template(tmp_path) == "two"
    (tmp_path / "chat_template.jinja").write_text("three")
    assert read_template(tmp_path) == "three"


@pytest.mark.parametrize("content", [None, "{}", "{", '{"chat_template": 3}', "[]"])
def test_a_directory_without_a_usable_template_says_where_one_belongs(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "tokenizer_config.json").write_text(content)
    with pytest.raises(InputError, match="tokenizer_config"):
        read_template(tmp_path)
    with pytest.raises(InputError, match="not a directory"):
        read_template(tmp_path / "missing")


def test_an_unknown_chat_format_says_what_to_do() -> None:
    with pytest.raises(InputError, match="no renderer knows") as caught:
        detect("<start_of_turn>{{ messages }}", "models/x")
    assert "qwen3" in str(caught.value)
    assert "--family" in str(caught.value)
    with pytest.raises(InputError, match=r"did you mean qwen3\.5"):
        family_of(Path("anywhere"), "qwen35")
    with pytest.raises(InputError, match=r"journeyman\.tokens\.framing"):
        detect(CHAT_TEMPLATE, "run/tokenizer")


def test_every_family_can_be_detected() -> None:
    assert {name for name, _, _ in SIGNS} == set(FAMILIES)


def model_directory(source: Path, target: Path, template: str, **config: object) -> Path:
    target.mkdir()
    shutil.copy(source / "tokenizer.json", target)
    (target / "tokenizer_config.json").write_text(json.dumps({"chat_template": template, **config}))
    return target


def test_a_right_renderer_is_verified_on_text_special_tokens_and_ids(
    family_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    for name in ("glm-4.7", "smollm2"):
        template = (HERE / f"{name}.jinja").read_text()
        audit = audit_model(model_directory(family_dir(name), tmp_path / name, template))
        assert (audit.family, audit.ids_verified, audit.dates) == (name, True, ())
        kinds = {check.name.split(":")[0] for check in audit.checks}
        assert kinds == {"special tokens", "text", "ids"}
        bridged = [check.name for check in audit.checks if check.name.endswith("after a tool turn")]
        assert len(bridged) == (4 if name == "glm-4.7" else 0)


@pytest.mark.parametrize(
    ("family", "file"),
    [
        ("qwen2.5", "qwen2_5"),
        ("qwen3", "qwen3"),
        ("qwen3-2507", "qwen3_instruct_2507"),
        ("qwen3.5", "qwen3_5_think"),
        ("qwen3.6", "qwen3_6"),
        ("qwen3.8", "qwen3_8"),
        ("llama3", "llama3"),
        ("llama3.1", "llama3_2"),
        ("glm-4.5", "glm4moe"),
        ("gpt-oss", "gptoss"),
    ],
)
def test_every_family_passes_the_audit_of_its_own_directory(
    family_dir: Callable[[str], Path], tmp_path: Path, family: str, file: str
) -> None:
    found = importlib.util.find_spec("trl")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the official templates come with the package trl: pip install trl")
    template = Path(found.submodule_search_locations[0], "chat_templates", f"{file}.jinja").read_text()
    bos = "<|begin_of_text|>" if family.startswith("llama") else None
    audit = audit_model(model_directory(family_dir(family), tmp_path / "m", template, bos_token=bos))
    assert [check for check in audit.checks if check.verdict != "equal"] == []
    assert audit.family == family
    stated = {"llama3.1": {"fixed", "wall clock"}, "gpt-oss": {"wall clock"}}
    assert {item.kind for item in audit.dates} == stated.get(family, set())


def test_a_template_that_differs_is_found_with_the_place(family_dir: Callable[[str], Path], tmp_path: Path) -> None:
    template = (
        (HERE / "smollm2.jinja").read_text().replace("named SmolLM, trained", "named SmolLM on 2025-07-01, trained")
    )
    audit = audit_model(model_directory(family_dir("smollm2"), tmp_path / "m", template))
    assert not audit.ids_verified
    wrong = [check for check in audit.checks if check.verdict == "differs"]
    assert [check.name for check in wrong] == ["text: user", "ids: user"]
    assert "template ' on 2025-07-01" in wrong[0].detail
    assert [d.text for d in audit.dates] == ["2025-07-01"]
    assert isinstance(audit.dates[0], TemplateDate)


def test_a_vocabulary_of_another_family_is_found(family_dir: Callable[[str], Path], tmp_path: Path) -> None:
    directory = model_directory(family_dir("llama3"), tmp_path / "m", (HERE / "glm-4.7.jinja").read_text())
    (check,) = audit_model(directory).checks
    assert (check.name, check.verdict) == ("special tokens", "differs")
    assert "[gMASK]" in check.detail


def test_without_a_template_a_named_family_is_checked_as_far_as_possible(
    family_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    shutil.copy(family_dir("qwen3") / "tokenizer.json", tmp_path)
    audit = audit_model(tmp_path, "qwen3")
    assert [check.verdict for check in audit.checks] == ["equal", "not checked", "not checked"]
    assert not audit.ids_verified
    with pytest.raises(InputError, match="no chat template"):
        audit_model(tmp_path)


def test_a_model_directory_without_tokenizer_is_an_input_error(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text((HERE / "smollm2.jinja").read_text())
    with pytest.raises(InputError, match=r"needs its tokenizer\.json"):
        audit_model(tmp_path)
