"""Interviews: transcripts with planted quotes, and the code book."""

from __future__ import annotations

from journeyman.worlds.content import Heading, Paragraph, Prose, Table, Text
from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row


def interview_held(draft: Draft, event: Row) -> None:
    """A transcript: questions and answers, each planted quote verbatim on a line of its own."""
    interview = draft.truth.one("SELECT * FROM interview WHERE id = :id", id=event["payload"]["interview"])
    rng, library = draft.rng(f"transcript {interview['id']}"), pack("interviews")
    quotes = draft.truth.rows("SELECT * FROM quote WHERE interview_id = :id ORDER BY id", id=interview["id"])
    answers = [
        draft.fact(
            f"quote:{q['id']}",
            q["text"],
            q["text"],
            "text",
            subject=f"interview:{interview['id']}",
            predicate=q["code"],
            rows=(f"quote:{q['id']}",),
        )
        for q in quotes
    ]
    answers += rng.sample(library["answers"]["neutral"], 4)
    rng.shuffle(answers)
    questions = rng.sample(library["questions"]["texts"], len(answers))
    lines = [
        f"Interview {interview['id']}",
        f"Date: {interview['date']}",
        f"Interviewee: {interview['interviewee']}",
        "",
    ]
    for question, answer in zip(questions, answers, strict=True):
        lines += [f"Q: {question.format(company=draft.setting.short)}", f"A: {answer}", ""]
    if int(interview["id"][2:]) % 3:
        path = f"interviews/{draft.setting.file_name('interview', interview['id'])}.txt"
        content: Text | Prose = Text("\n".join(lines))
    else:
        path = f"interviews/{draft.setting.file_name('interview', interview['id'])}.docx"
        content = Prose((Heading(lines[0], 0), *(Paragraph(line) for line in lines[1:] if line)), lines[0])
    draft.document(
        path,
        "transcript",
        content,
        event["id"],
        day=event["date"],
        author=draft.roles["consultant"]["name"],
        subject=f"interview:{interview['id']}",
    )
    if interview["id"] == "IV01":
        _code_book(draft, event)


def _code_book(draft: Draft, event: Row) -> None:
    library = pack("interviews")
    table = (("Code", "Meaning"), *sorted(library["codes"].items()))
    blocks = (
        Heading("Code book", 0),
        Paragraph(
            "Every statement that fits a code gets it; a transcript may have"
            " several codes. Quotes are given verbatim with their place."
        ),
        Table(table, widths=(2, 5)),
    )
    draft.document(
        f"interviews/{draft.setting.file_name('code book')}.docx",
        "code_book",
        Prose(blocks, "Code book"),
        event["id"],
        day=event["date"],
        author=draft.roles["consultant"]["name"],
    )
