"""The page: its tables equal the JSON, hostile text stays text, it needs no network, and it is usable by everybody."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from ladder_report_fixture import make_report

from journeyman.ladder.report.figures import Gate
from journeyman.ladder.report.html import heat, render_html
from journeyman.ladder.report.model import Report, Step

VOID = {"meta", "link", "br", "hr", "img", "input", "circle", "rect", "path"}
HOSTILE = "<script>alert(1)</script>\"' onload=x <img src=x onerror=y> </style> {{ 7*7 }} | `x` **b** </title>"


@dataclass
class Parsed:
    """What the tests look at: tables as rows of (text, raw values), and every tag with its attributes."""

    tables: dict[str, list[list[tuple[str, list[float]]]]] = field(default_factory=dict)
    tags: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    """Builds ``Parsed``; fails on tags that do not match."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found, self.stack = Parsed(), []
        self.caption, self.rows, self.cell = "", [], None

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.found.tags.append((tag, found))
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "table":
            self.caption, self.rows = "", []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.cell = ["", []]
        elif tag == "data" and self.cell is not None:
            self.cell[1].append(float(found["value"]))
        elif tag == "span" and "data-low" in found and self.cell is not None:
            self.cell[1] += [float(found["data-low"]), float(found["data-high"])]

    def handle_startendtag(self, tag, attrs):
        self.found.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.stack and self.stack[-1] == tag, f"</{tag}> closes {self.stack[-3:]}"
        self.stack.pop()
        if tag in ("td", "th") and self.cell is not None:
            self.rows[-1].append((self.cell[0].strip(), self.cell[1]))
            self.cell = None
        elif tag == "table":
            self.found.tables[self.caption] = self.rows[1:]

    def handle_data(self, data):
        self.found.text += data
        if self.cell is not None:
            self.cell[0] += data
        elif self.stack and self.stack[-1] == "caption":
            self.caption += data


def parse(html: str) -> Parsed:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.stack == []
    return reader.found


@pytest.fixture(scope="module")
def report() -> Report:
    return make_report()


@pytest.fixture(scope="module")
def page(report: Report) -> Parsed:
    return parse(render_html(report))


def raws(rows, column):
    return [row[column][1] for row in rows]


def figure(part):
    return [part.value, part.low, part.high]


def test_the_four_models_stand_side_by_side_under_both_harnesses_with_the_numbers_of_the_json(report, page):
    rows = page.tables["Four models on held-out worlds"]
    assert [(row[0][0], row[1][0]) for row in rows] == [(model.label, model.harness) for model in report.models]
    assert len(rows) == 8 and len({row[0][0] for row in rows}) == 4
    assert raws(rows, 2) == [figure(model.scores.mean_reward) for model in report.models]
    assert raws(rows, 3) == [figure(model.scores.pass_1) for model in report.models]
    assert raws(rows, 4) == [[model.scores.pass_1.n_tasks] for model in report.models]


def test_gains_families_and_ablation_equal_the_json(report, page):
    gains = page.tables["Trained minus warm start, paired over the same tasks"]
    assert raws(gains, 3) == [figure(row.gains.pass_1) for row in report.transfer]
    families = page.tables["Before and after by task family, held-out worlds"]
    for column, pick in enumerate(
        [
            lambda row: row.before.mean_reward,
            lambda row: row.after.mean_reward,
            lambda row: row.before.pass_1,
            lambda row: row.after.pass_1,
            lambda row: row.gains.pass_1,
        ],
        start=1,
    ):
        assert raws(families, column) == [figure(pick(row)) for row in report.families]
    arms = page.tables["Ablation of loss aggregation, dev worlds"]
    assert raws(arms, 3) == [figure(row.dev.pass_1) for row in report.ablation.rows]
    assert [row[7][0] for row in arms] == ["", "tie", "", "tie"]


def test_every_chart_has_a_table_twin_with_its_points(report, page):
    curves = [report.reward_curve, *report.curves]
    for curve in curves:
        rows = page.tables[curve.title]
        for column, series in enumerate(curve.series, start=1):
            expected = [[p.y, p.low, p.high] if p.low is not None else [p.y] for p in series.points]
            assert raws(rows, column) == expected
    charts = [found for tag, found in page.tags if tag == "svg" and found.get("role") == "img"]
    assert len(charts) == len(curves) + 1  # the families
    assert all(found.get("aria-labelledby") for found in charts)


def test_behaviour_errors_gaps_openings_and_files_equal_the_json(report, page):
    behaviour = page.tables["Behaviour before and after"]
    assert raws(behaviour, 1) == [[] if row.before.value is None else [row.before.value] for row in report.behaviour]
    assert "n/a (0 / 0)" in [row[1][0] for row in behaviour]
    errors = page.tables["Error table"]
    assert [(row[0][0], row[1][1]) for row in errors] == [(row.cause, [row.n_trials]) for row in report.errors.rows]
    gaps = page.tables["Absolute logprob gap, engine against trainer, sampled tokens"]
    assert raws(gaps, 1) == [[point.mean] for point in report.logprob_gaps]
    openings = page.tables["Openings of the test split"]
    assert [row[2][0] for row in openings] == [opening.opened_at for opening in report.openings]
    assert [row[-1][0] for row in page.tables["Files and digests"]] == [entry.sha256 for entry in report.manifest]


def test_every_token_of_the_replay_is_shown_with_id_source_mask_logprob_and_version(report, page):
    tokens = [token for turn in report.replay.turns for token in turn.tokens]
    spans = [found for tag, found in page.tags if tag == "span" and "title" in found]
    assert len(spans) == len(tokens)
    for token, found in zip(tokens, spans, strict=True):
        assert f"id {token.id}; {token.source}; mask {token.mask}" in found["title"]
        assert ("logprob" in found["title"]) == (token.logprob is not None)
        assert ("weights 14" in found["title"]) == (token.version == 14)
        classes = found["class"].split()
        assert token.source in classes and ("m1" in classes) == bool(token.mask)
    rows = page.tables["Tokens of the replayed trial"]
    assert raws(rows, 3) == [[token.id] for token in tokens]
    assert raws(rows, 6) == [[] if token.logprob is None else [token.logprob] for token in tokens]


def test_gates_print_what_was_measured_against_what(report, page):
    rows = page.tables["Steps and their gates"]
    assert [row[1][0] for row in rows] == ["✓ passed"] * 7
    assert rows[3][3][0] == "0.682 > 0"
    checks = page.tables["Gate and checks of step 1"]
    assert [row[1][0] for row in checks] == ["gate", "check", "check"] and checks[0][2][1] == [0.0]


def test_honesty_stands_in_the_section_of_the_result(report):
    html = render_html(report)
    result = html[html.index('id="result"') : html.index('id="learning"')]
    for line in report.honesty:
        assert line in result


def test_hostile_text_stays_text_and_breaks_nothing():
    clean, hostile = render_html(make_report()), render_html(make_report(hostile=HOSTILE))
    found = parse(hostile)
    assert [tag for tag, _ in found.tags if tag in ("script", "img", "iframe", "object", "link", "form")] == []
    assert not [name for _, attributes in found.tags for name in attributes if name.startswith("on")]
    assert (
        found.text.count("<script>alert(1)</script>") >= 10 and "{{ 7*7 }}" in found.text and "49 |" not in found.text
    )
    assert sorted({tag for tag, _ in found.tags}) == sorted({tag for tag, _ in parse(clean).tags})


def test_the_page_needs_no_network_and_no_script():
    html = render_html(make_report())
    assert not re.search(r"https?://|//cdn|@import|url\(", html)
    found = parse(html)
    assert not [tag for tag, _ in found.tags if tag in ("script", "link", "img", "iframe")]
    policy = next(a["content"] for tag, a in found.tags if tag == "meta" and a.get("http-equiv"))
    assert policy.startswith("default-src 'none'")
    assert all(a["href"].startswith("#") for tag, a in found.tags if tag == "a")


def test_links_and_labels_point_at_something_and_ids_are_unique(page):
    ids = [a["id"] for _, a in page.tags if "id" in a]
    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for tag, a in page.tags if tag == "a"} <= set(ids)
    labels = {name for _, a in page.tags for name in (a.get("aria-labelledby") or "").split()}
    assert labels and labels <= set(ids)


def test_every_table_has_a_caption_and_every_heading_a_scope(page):
    tags = [tag for tag, _ in page.tags]
    assert tags.count("table") == tags.count("caption") > 15
    assert all(a.get("scope") in ("col", "row") for tag, a in page.tags if tag == "th")
    assert next(a for tag, a in page.tags if tag == "html")["lang"] == "en"


def _luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(a: str, b: str) -> float:
    light, dark = sorted((_luminance(a), _luminance(b)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _mixed(colour: str, share: float, base: str) -> str:
    pairs = [(int(colour[i : i + 2], 16), int(base[i : i + 2], 16)) for i in (1, 3, 5)]
    return "#" + "".join(f"{round(share * x + (1 - share) * y):02x}" for x, y in pairs)


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_has_contrast_in_both_schemes(scheme):
    html = render_html(make_report())
    block = re.findall(r":root \{(.*?)\}", html, re.S)[scheme]
    colour = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for ground in ("paper", "bg"):
        for text in ("ink", "muted", "after", "before", "pass", "fail"):
            assert _contrast(colour[text], colour[ground]) >= 4.5, (text, ground)
        for line in ("strong", "third", "fourth", "note-edge"):
            assert _contrast(colour[line], colour[ground]) >= 2.7, (line, ground)
    assert _contrast(colour["ink"], colour["note"]) >= 4.5
    assert _contrast(colour["ink"], _mixed(colour["after"], 0.5, colour["paper"])) >= 4.5  # darkest token


def test_surprising_tokens_are_darker():
    assert [heat(logprob) for logprob in (None, -0.01, -0.5, -1.0, -3.0, -9.0)] == [0, 0, 1, 2, 3, 4]


def bare(**changes) -> Report:
    empty = {name: None if name in ("reward_curve", "ablation", "errors", "replay") else () for name in SECTIONS}
    return make_report().model_copy(update=empty | changes)


SECTIONS = [
    *("warnings", "steps", "models", "transfer", "reward_curve", "curves", "families", "behaviour", "ablation"),
    *("errors", "openings", "logprob_gaps", "replay", "manifest", "boundaries"),
]


def test_a_run_that_has_only_begun_renders():
    found = parse(render_html(bare(status="running")))
    assert "Running, no test yet" in found.text and "never opened" in found.text


def test_a_failed_step_opens_its_evidence_and_leads_the_page():
    step = Step(
        number=1,
        name="environment",
        status="failed",
        gate=Gate.of("system error share", 0.031, "<", 0.01),
        evidence={"sandbox_failed": 11},
    )
    html = render_html(bare(status="failed", steps=(step,)))
    assert "Failed at step 1, environment; 0 of 7 steps passed." in html
    assert "<details open>" in html and "does not hold" in html


@pytest.mark.browser
def test_a_browser_shows_the_page_without_complaints(tmp_path: Path):
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no Chromium on this machine")
    page = tmp_path / "report.html"
    page.write_text(render_html(make_report(hostile=HOSTILE)))
    flags = [
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
        *("--disable-background-networking", "--disable-component-update", "--enable-logging=stderr"),
    ]
    shown = subprocess.run(
        [browser, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "Every number on this page is a field of that file" in shown.stdout
    assert "CONSOLE" not in shown.stderr, shown.stderr
