"""``write_report``: three files from one report, each durable, the JSON last so that it vouches for the others."""

from __future__ import annotations

from pathlib import Path

from journeyman import durable
from journeyman.ladder.report.html import render_html
from journeyman.ladder.report.markdown import render_markdown
from journeyman.ladder.report.model import Report
from journeyman.redact import process_redactor

JSON_NAME, MARKDOWN_NAME, HTML_NAME = "report.json", "report.md", "report.html"


def write_report(report: Report, directory: Path) -> tuple[Path, Path, Path]:
    """Write ``report.json``, ``report.md`` and ``report.html`` into ``directory``; each replaces its predecessor whole.

    Returns:
        The three paths, in this order.

    Raises:
        StorageError: the directory cannot be written; older files stay.
    """
    report = Report.model_validate(process_redactor().data(report.model_dump(mode="json")))
    markdown, html = render_markdown(report), render_html(report)
    durable.write_text(directory / MARKDOWN_NAME, markdown)
    durable.write_text(directory / HTML_NAME, html)
    durable.write_json(directory / JSON_NAME, report.model_dump(mode="json"))
    return directory / JSON_NAME, directory / MARKDOWN_NAME, directory / HTML_NAME


def read_report(path: Path) -> Report:
    """A report read back from ``report.json`` (pydantic ValidationError when it is none)."""
    return Report.model_validate_json(path.read_bytes())
