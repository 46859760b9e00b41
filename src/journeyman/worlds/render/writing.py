"""Every document, mailbox, chat and calendar of a plan as bytes, with the place of each stated fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from journeyman.worlds.content import Book, Content, Deck, Delimited, Mail, Prose, Text
from journeyman.worlds.plan import Plan, Rendering
from journeyman.worlds.render.apps import render_calendar, render_chat, render_slack
from journeyman.worlds.render.docx import render_docx
from journeyman.worlds.render.mail import render_mail, render_mbox
from journeyman.worlds.render.pdf import render_pdf
from journeyman.worlds.render.places import Places, Style
from journeyman.worlds.render.plain import render_csv, render_text
from journeyman.worlds.render.pptx import render_pptx
from journeyman.worlds.render.xlsx import render_xlsx

CHAT_EXPORT = "exports/chat_export.zip"
CALENDAR_EXPORT = "exports/calendar.ics"
MAILBOX = "mail/mailbox.mbox"


@dataclass(frozen=True)
class Written:
    """What was written.

    Attributes:
        files: path -> bytes, below the world's root.
        apps: path -> bytes, below the state directory of the applications.
        renderings: where facts can be read.
    """

    files: dict[str, bytes]
    apps: dict[str, bytes]
    renderings: tuple[Rendering, ...]


def render_plan(plan: Plan, style: Style, people: Mapping[str, Mapping[str, Any]], company: str) -> Written:
    """Write a plan. Mails come last, since they attach files."""
    files: dict[str, bytes] = {}
    renderings: list[Rendering] = []

    def keep(path: str, places: Places) -> None:
        renderings.extend(Rendering(path, fact, surface, locator) for fact, surface, locator in places.found)

    mails = []
    for document in sorted(plan.documents.values(), key=lambda one: (isinstance(one.content, Mail), one.path)):
        places = Places()
        files[document.path] = render_content(document.path, document.content, style, files, places)
        keep(document.path, places)
    for mail in plan.mails:
        places = Places()
        mails.append((mail, render_mail(mail, files, places)))
        keep(f"apps/{MAILBOX}", places)
    channels = sorted({message.channel for message in plan.messages})
    apps = {MAILBOX: render_mbox(mails), **render_chat(plan.messages, people, channels)}
    places = Places()
    files[CHAT_EXPORT] = render_slack(plan.messages, people, channels, places)
    keep(CHAT_EXPORT, places)
    places = Places()
    files[CALENDAR_EXPORT] = apps["calendar/calendar.ics"] = render_calendar(plan.meetings, company, places)
    keep(CALENDAR_EXPORT, places)
    return Written(dict(sorted(files.items())), dict(sorted(apps.items())), tuple(renderings))


def render_content(path: str, content: Content, style: Style, files: Mapping[str, bytes], places: Places) -> bytes:
    """One file; the suffix of the path says how prose is written. Raises ValueError for what no renderer writes."""
    suffix = path.rpartition(".")[2]
    match content:
        case Prose():
            return render_docx(content, style, places) if suffix == "docx" else render_pdf(content, style, places)
        case Book():
            return render_xlsx(content, style, places)
        case Deck():
            return render_pptx(content, style, places)
        case Delimited():
            return render_csv(content, places)
        case Text():
            return render_text(content, places)
        case Mail():
            return render_mail(content, files, places)
    raise ValueError(f"{path}: no renderer for {type(content).__name__}")
