"""Every tool that runs inside, once with success and readback and once with an error that says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from journeyman.sandbox.protocol import Sandbox
from journeyman.tools import SURFACE, SandboxTools
from journeyman.tools.surface import INSIDE_SERVERS

Call = tuple[str, dict[str, Any], str]
"""Tool, arguments, words that the answer must hold."""

BLOCKS = [
    {"type": "heading", "text": "Plan", "level": 1},
    {"type": "paragraph", "text": "Costs fall by 12 percent"},
    {"type": "table", "rows": [["item", "cost"], ["glass", 40]], "header": True},
]
DOC, BOOK, DECK, PDF = "/made/plan.docx", "/made/costs.xlsx", "/made/talk.pptx", "/made/memo.pdf"
SHEET = {"name": "Costs", "headers": ["item", "cost"], "rows": [["glass", 40], ["sand", 2.5], ["sum", "=SUM(B2:B3)"]]}
NINE = {"dateTime": "2026-03-02T09:00:00+01:00"}
TEN = {"dateTime": "2026-03-02T10:00:00+01:00"}

GOOD: list[Call] = [
    ("filesystem_list_files", {}, "note.txt"),
    ("filesystem_read_text_file", {"file_path": "/note.txt"}, "quick fox"),
    ("filesystem_search_files", {"pattern": "*.txt"}, "/note.txt"),
    ("filesystem_get_file_metadata", {"file_path": "note.txt"}, '"size_bytes": 16'),
    ("filesystem_get_directory_tree", {"show_size": True}, "note.txt (16 bytes)"),
    ("filesystem_read_image_file", {"file_path": "red.png"}, '"mean_color": "FF0000"'),
    ("documents_create_document", {"directory": "/made", "file_name": "plan", "content": BLOCKS},
     "body/p2 paragraph: Costs"),
    ("documents_get_document_overview", {"file_path": DOC}, '"text": "Plan"'),
    ("documents_add_content_text", {"file_path": DOC, "identifier": "body/p2", "text": " a year"}, "12 percent a year"),
    ("documents_edit_content_text", {"file_path": DOC, "identifier": "body/t1/r2c2", "new_text": "41"},
     '"after": "41"'),
    ("documents_apply_formatting", {"file_path": DOC, "identifier": "body/p2", "italic": True, "font_size": 14},
     '"italic": true, "font_size": 14.0'),
    ("documents_comments", {"file_path": DOC, "action": "add", "identifier": "body/p2", "text": "source?"}, "source?"),
    ("documents_header_footer", {"file_path": DOC, "action": "set", "area": "header", "content": [BLOCKS[1]]},
     "Costs fall by 12 percent"),
    ("documents_page_margins", {"file_path": DOC, "action": "set", "left": 2}, '"left": 2.0'),
    ("documents_page_orientation", {"file_path": DOC, "action": "set", "orientation": "landscape"},
     '"width_inches": 11.0'),
    ("documents_add_image", {"file_path": DOC, "image_path": "red.png", "identifier": "body/p2", "width": 1},
     '"width_pt": 72.0'),
    ("documents_read_image", {"file_path": DOC, "annotation": "image0"}, '"width": 20'),
    ("documents_modify_image", {"file_path": DOC, "image_index": 0, "operation": "rotate", "rotation": 90},
     '"width": 10'),
    ("documents_delete_content_text", {"file_path": DOC, "identifier": "body/p1"}, '"before": "Plan"'),
    ("documents_read_document_content", {"file_path": DOC}, '"41"'),
    ("spreadsheets_create_spreadsheet", {"directory": "/made", "file_name": "costs.xlsx", "sheets": [SHEET]},
     "42.5 {=SUM(B2:B3)}"),
    ("spreadsheets_list_tabs_in_spreadsheet", {"file_path": BOOK}, '"used": "A1:B4"'),
    ("spreadsheets_add_content_text", {"file_path": BOOK, "tab_index": 0, "cell": "B2", "value": 50}, '"after": 52.5'),
    ("spreadsheets_edit_spreadsheet", {"file_path": BOOK, "operations": [
        {"type": "append_rows", "sheet": "Costs", "rows": [["lime", 7]]},
        {"type": "format_cells", "sheet": "Costs", "range": "A1:B1", "font_bold": True, "border_color": "FF0000"},
        {"type": "set_number_format", "sheet": "Costs", "range": "B2:B4", "format": "0.00"},
        {"type": "set_column_width", "sheet": "Costs", "column": "A", "width": 30},
        {"type": "set_row_height", "sheet": "Costs", "row": 1, "height": 30},
        {"type": "freeze_panes", "sheet": "Costs", "cell": "A2"},
        {"type": "set_auto_filter", "sheet": "Costs"},
        {"type": "add_data_validation", "sheet": "Costs", "range": "C1:C5",
         "validation_type": "list", "formula1": "a,b"},
        {"type": "add_conditional_formatting", "sheet": "Costs", "range": "B2:B4", "rule_type": "cellIs",
         "operator": "greaterThan", "formula": "5", "fill_color": "FF0000"},
        {"type": "add_image", "sheet": "Costs", "cell": "F1", "image_path": "red.png"},
        {"type": "merge_cells", "sheet": "Costs", "range": "A9:B9"},
        {"type": "unmerge_cells", "sheet": "Costs", "range": "A9:B9"},
        {"type": "add_named_range", "name": "Total", "sheet": "Costs", "range": "B4"},
        {"type": "delete_named_range", "name": "Total"},
        {"type": "rename_sheet", "sheet": "Costs", "new_name": "All costs"},
    ]}, '"freeze_panes": "A2"'),
    ("spreadsheets_create_chart", {"file_path": BOOK, "sheet": "All costs", "data_range": "A1:B3", "chart_type": "bar"},
     '"kind": "BarChart", "at": "D1"'),
    ("spreadsheets_add_tab", {"file_path": BOOK, "tab_name": "More", "sheet_data": {"rows": [["x", 1]]}},
     '1: ["x", 1]'),
    ("spreadsheets_delete_tab", {"file_path": BOOK, "tab_index": 1}, '"tabs": ["All costs"]'),
    ("spreadsheets_delete_content_cell", {"file_path": BOOK, "tab_index": 0, "cell": "B3"},
     '"address": "\'All costs\'!B3"'),
    ("spreadsheets_read_tab", {"file_path": BOOK, "include_formulas": True}, "50 {=SUM(B2:B3)}"),
    ("spreadsheets_filter_tab", {"file_path": BOOK, "tab_index": 0, "filters": [
        {"column": "item", "operator": "equals", "value": "GLASS"}]}, '"match": 1'),
    ("spreadsheets_read_csv", {"file_path": "rows.csv"}, '2: ["1", "2"]'),
    ("presentations_create_deck", {"directory": "/made", "file_name": "talk", "slides": [
        {"layout": "title", "title": "Talk", "subtitle": "in short", "notes": "smile"},
        {"layout": "two_content", "title": "Both", "columns": {"left": ["a"], "right": ["b"]}},
        {"layout": "title_only", "title": "Table", "table": {"rows": [["h", "k"], ["1", "2"]]}}]}, "smile"),
    ("presentations_add_slide", {"file_path": DECK, "index": 1, "title": "New", "bullets": ["one"]}, "--- slide 1"),
    ("presentations_edit_slides", {"file_path": DECK, "operations": [
        {"type": "update_slide_title", "index": 0, "title": "Short talk"},
        {"type": "append_bullets", "index": 1, "items": ["two"]},
        {"type": "set_bullets", "index": 2, "placeholder": "right", "items": ["c"]},
        {"type": "update_table_cell", "index": 3, "table_idx": 0, "row": 1, "column": 1, "text": "9"},
        {"type": "format_table_cell", "index": 3, "table_idx": 0, "row": 1, "column": 1, "bold": True},
        {"type": "apply_text_formatting", "index": 0, "placeholder": "title", "bold": True, "font_size": 20},
        {"type": "add_hyperlink", "index": 0, "placeholder": "title", "url": "http://filings.example/"},
        {"type": "set_notes", "index": 1, "notes": "slow"},
        {"type": "append_table", "index": 1, "rows": [["t"]]},
        {"type": "clear_placeholder", "index": 2, "placeholder": "left"},
        {"type": "update_slide_subtitle", "index": 0, "subtitle": "shorter"}]}, "Short talk"),
    ("presentations_edit_slides", {"file_path": DECK, "operations": [
        {"type": "duplicate_slide", "index": 0}, {"type": "delete_slide", "index": 1},
        {"type": "replace_text", "search": "shorter", "replace": "shortest"}]}, "shortest"),
    ("presentations_add_image", {"file_path": DECK, "image_path": "red.png", "slide_index": 0, "width": 2},
     "slide0/image0"),
    ("presentations_read_image", {"file_path": DECK, "annotation": "slide0/image0"}, '"width": 20'),
    ("presentations_modify_image", {"file_path": DECK, "slide_index": 0, "image_index": 0, "operation": "crop",
                                    "crop_left": 0.25}, '"crop_left": 0.25'),
    ("presentations_insert_chart", {"presentation_path": DECK, "slide_index": 1, "spreadsheet_path": BOOK,
                                    "sheet_name": "All costs", "data_range": "A1:B2", "title": "Cost"}, "series1"),
    ("presentations_insert_table", {"file_path": DECK, "slide_index": 1, "rows": [["p", "q"], [1, None]]},
     '["p", "q"]'),
    ("presentations_add_shape", {"file_path": DECK, "slide_index": 1, "shape_type": "star", "text": "look"}, "look"),
    ("presentations_read_individualslide", {"file_path": DECK, "slide_index": 1}, "look"),
    ("presentations_read_slides", {"file_path": DECK, "start": 0, "end": 1}, "Short talk"),
    ("presentations_read_completedeck", {"file_path": DECK}, "--- slide 3"),
    ("pdfs_create_pdf", {"directory": "/made", "file_name": "memo", "content": [
        *BLOCKS, {"type": "bullet list", "items": ["x"]}, {"type": "page break"}, {"type": "spacer"},
        {"type": "paragraph", "text": "second page"}]}, "--- page 2"),
    ("pdfs_read_pdf_pages", {"file_path": PDF, "pages": [1]}, "Costs fall by 12 percent"),
    ("pdfs_search_pdf", {"file_path": PDF, "query": "FALL BY"}, '"page": 1'),
    ("pdfs_read_page_as_image", {"file_path": PDF, "page_number": 2}, '"width": 1224'),
    ("pdfs_read_image", {"file_path": "drawn.pdf", "annotation": "p1/image1"}, '"mean_color": "FF0000"'),
    ("mail_list_mails", {}, "1 mails"),
    ("mail_read_mail", {"mail_id": "m1"}, '"subject": "Offer"'),
    ("mail_search_mail", {"from_email": "desk@", "after_date": "2026-01-01"}, "1 mails match"),
    ("mail_send_mail", {"from_email": "agent@w.example", "to_email": ["desk@p.example"], "subject": "Hi", "body": "B",
                        "attachments": ["note.txt"]}, '"/note.txt"'),
    ("mail_reply_mail", {"original_mail_id": "m1", "body": "yes"}, '"subject": "Re: Offer"'),
    ("mail_reply_all_mail", {"original_mail_id": "m1", "body": "yes"}, '"boss@w.example"'),
    ("mail_forward_mail", {"original_mail_id": "m1", "to_email": "law@w.example"}, "Forwarded message"),
    ("chat_list_channels", {}, '"channel_id": "space-1"'),
    ("chat_get_channel_history", {"channel_id": "space-1"}, "good morning"),
    ("chat_get_thread_replies", {"channel_id": "space-1", "post_id": "c1"}, "1 messages in thread t1"),
    ("chat_get_user_profile", {"user_id": "desk@p.example"}, '"space-1"'),
    ("chat_get_users", {}, "1 people"),
    ("chat_post_message", {"channel_id": "space-1", "message": "done"}, '"text": "done"'),
    ("chat_reply_to_thread", {"channel_id": "space-1", "post_id": "c1", "message": "hello"}, '"topic_id": "t1"'),
    ("chat_add_reaction", {"channel_id": "space-1", "post_id": "c1", "emoji_name": "thumbsup"}, "reactor_emails"),
    ("chat_delete_post", {"channel_id": "space-1", "post_id": "c1"}, '"message_state": "DELETED"'),
    ("calendar_list_events", {}, '"id": "u1"'),
    ("calendar_read_event", {"event_id": "u1"}, '"summary": "Review"'),
    ("calendar_create_event", {"summary": "Call", "start": NINE, "end": TEN,
                               "attendees": [{"email": "desk@p.example"}]}, '"responseStatus": "needsAction"'),
    ("calendar_update_event", {"event_id": "u1", "location": "Room 2"}, '"location": "Room 2"'),
    ("calendar_delete_event", {"event_id": "u1"}, '"events_left": 1'),
    ("search_world", {"query": "quick fox"}, '"path": "/note.txt"'),
    ("output_read_page", {"file_path": "note.txt", "offset": 4, "limit": 5}, "quick"),
    ("code_exec", {"code": "ls /ws/made"}, "plan.docx"),
    ("documents_delete_document", {"file_path": DOC}, '"exists": false'),
    ("spreadsheets_delete_spreadsheet", {"file_path": BOOK}, '"exists": false'),
    ("presentations_delete_deck", {"file_path": DECK}, '"exists": false'),
]  # fmt: skip

BAD: list[Call] = [
    ("filesystem_list_files", {"path": "/note.txt"}, "is a file"),
    ("filesystem_read_text_file", {"file_path": "/notes.txt"}, "did you mean /note.txt"),
    ("filesystem_search_files", {"pattern": "*", "path": "/nowhere"}, "no directory /nowhere"),
    ("filesystem_get_file_metadata", {"file_path": "../../etc/passwd"}, "lies outside the world"),
    ("filesystem_get_directory_tree", {"path": "/nowhere"}, "no directory"),
    ("filesystem_read_image_file", {"file_path": "note.txt"}, "is no image"),
    ("documents_create_document", {"directory": "/", "file_name": "a/b", "content": BLOCKS}, "is not a file name"),
    ("documents_get_document_overview", {"file_path": "broken.docx"}, "damaged"),
    ("documents_add_content_text", {"file_path": "good.docx", "identifier": "body/p9", "text": "x"}, "nearest: body/p"),
    ("documents_edit_content_text", {"file_path": "good.docx", "identifier": "no", "new_text": "x"},
     "no 'no' in this docx"),
    ("documents_apply_formatting", {"file_path": "good.docx", "identifier": "body/p1"}, "needs at least one of"),
    ("documents_comments", {"file_path": "good.docx", "action": "add"}, "needs identifier and text"),
    ("documents_header_footer", {"file_path": "good.docx", "action": "set", "area": "footer"}, "needs content"),
    ("documents_page_margins", {"file_path": "good.docx", "action": "set"}, "needs top, bottom, left or right"),
    ("documents_page_orientation", {"file_path": "good.docx", "action": "read", "section_index": 7}, "has 1 sections"),
    ("documents_add_image", {"file_path": "good.docx", "image_path": "note.txt", "identifier": "body/p1"},
     "is no image"),
    ("documents_read_image", {"file_path": "good.docx", "annotation": "image3"}, "there are none"),
    ("documents_modify_image", {"file_path": "good.docx", "image_index": 0, "operation": "flip"}, "has 0 images"),
    ("documents_delete_content_text", {"file_path": "good.docx", "identifier": "body/t4"}, "no 'body/t4'"),
    ("documents_read_document_content", {"file_path": "good.docx", "page_index": 4}, "has 1 pages"),
    ("documents_delete_document", {"file_path": "note.txt"}, "is no Word document"),
    ("spreadsheets_create_spreadsheet", {"directory": "/", "file_name": "b", "sheets": [{"name": "a/b", "rows": []}]},
     "cannot name a tab"),
    ("spreadsheets_list_tabs_in_spreadsheet", {"file_path": "broken.xlsx"}, "damaged"),
    ("spreadsheets_add_content_text", {"file_path": "good.xlsx", "tab_index": 0, "cell": "7B", "value": 1},
     "is no range"),
    ("spreadsheets_edit_spreadsheet", {"file_path": "good.xlsx", "operations": [
        {"type": "set_cell", "cell": "A1", "value": 9}, {"type": "merge_cells", "sheet": "Dat", "range": "A1:B1"}]},
     "operation 1 (merge_cells): no tab 'Dat'; there are Data; nothing was saved"),
    ("spreadsheets_create_chart",
     {"file_path": "good.xlsx", "sheet": "Data", "data_range": "A1:B1", "chart_type": "pie"},
     "no row of data"),
    ("spreadsheets_add_tab", {"file_path": "good.xlsx", "tab_name": "Data"}, "Data"),
    ("spreadsheets_delete_tab", {"file_path": "good.xlsx", "tab_index": 0}, "keeps at least one tab"),
    ("spreadsheets_delete_content_cell", {"file_path": "good.xlsx", "tab_index": 8, "cell": "A1"}, "has no tab 8"),
    ("spreadsheets_read_tab", {"file_path": "good.xlsx", "cell_range": "A:B"}, "write it like A1:C10"),
    ("spreadsheets_filter_tab", {"file_path": "good.xlsx", "tab_index": 0, "filters": [
        {"column": "Zed", "operator": "is_empty"}]}, "no column 'Zed'; there are item"),
    ("spreadsheets_read_csv", {"file_path": "rows.csv", "encoding": "klingon"}, "is not klingon"),
    ("spreadsheets_delete_spreadsheet", {"file_path": "note.txt"}, "it was left"),
    ("presentations_create_deck", {"directory": "/", "file_name": "d", "slides": [{"layout": "blank", "title": "T"}]},
     "no title placeholder"),
    ("presentations_add_slide", {"file_path": "good.pptx", "index": 9}, "index is at most 1"),
    ("presentations_edit_slides", {"file_path": "good.pptx", "operations": [
        {"type": "replace_text", "search": "zzz", "replace": "y"}]}, "does not occur; nothing was saved"),
    ("presentations_add_image", {"file_path": "good.pptx", "image_path": "red.png", "slide_index": 4}, "no slide 4"),
    ("presentations_read_image", {"file_path": "good.pptx", "annotation": "x"}, "no image 'x'"),
    ("presentations_modify_image", {"file_path": "good.pptx", "slide_index": 0, "image_index": 0, "operation": "flip"},
     "has 0 images"),
    ("presentations_insert_chart", {"presentation_path": "good.pptx", "slide_index": 0, "spreadsheet_path": "good.xlsx",
                                    "sheet_name": "Nope", "data_range": "A1:B2"}, "no tab 'Nope'; there are Data"),
    ("presentations_insert_table", {"file_path": "good.pptx", "slide_index": 0, "rows": []}, "at least one cell"),
    ("presentations_add_shape", {"file_path": "good.pptx", "slide_index": 0, "shape_type": "oval", "fill_color": "red"},
     "write RRGGBB"),
    ("presentations_read_individualslide", {"file_path": "good.pptx", "slide_index": 3}, "no slide 3"),
    ("presentations_read_slides", {"file_path": "good.pptx", "start": 5}, "has 1 slides"),
    ("presentations_read_completedeck", {"file_path": "broken.pptx"}, "damaged"),
    ("presentations_delete_deck", {"file_path": "note.txt"}, "it was left"),
    ("pdfs_create_pdf", {"directory": "/", "file_name": "p", "content": [{"type": "paragraph", "text": "\u65e5"}]},
     "not in the standard fonts"),
    ("pdfs_read_pdf_pages", {"file_path": "drawn.pdf", "pages": [9]}, "has 1 pages"),
    ("pdfs_search_pdf", {"file_path": "drawn.pdf", "query": " "}, "the query is empty"),
    ("pdfs_read_page_as_image", {"file_path": "broken.pdf", "page_number": 1}, "broken.pdf"),
    ("pdfs_read_image", {"file_path": "drawn.pdf", "annotation": "p1/image7"}, "there are p1/image1"),
    ("mail_list_mails", {"offset": 99}, "none at offset 99"),
    ("mail_read_mail", {"mail_id": "m2x"}, "no mail 'm2x'"),
    ("mail_search_mail", {"after_date": "yesterday"}, "write ISO 8601"),
    ("mail_send_mail", {"from_email": "a@w.example", "to_email": "nobody", "subject": "", "body": ""},
     "is no mail address"),
    ("mail_reply_mail", {"original_mail_id": "zz", "body": ""}, "mail_list_mails lists them"),
    ("mail_reply_all_mail", {"original_mail_id": "zz", "body": ""}, "no mail 'zz'"),
    ("mail_forward_mail", {"original_mail_id": "m1", "to_email": "b@w.example", "attachments": ["gone.txt"]},
     "no file gone"),
    ("chat_list_channels", {"limit": 0}, "at least 1"),
    ("chat_get_channel_history", {"channel_id": "space-2"}, "did you mean space-1?"),
    ("chat_get_thread_replies", {"channel_id": "space-1", "post_id": "c9x"}, "no message 'c9x'"),
    ("chat_get_user_profile", {"user_id": "zz"}, "no person 'zz'"),
    ("chat_get_users", {"page": -1}, "at least 0"),
    ("chat_post_message", {"channel_id": "space-1", "message": " "}, "the message is empty"),
    ("chat_reply_to_thread", {"channel_id": "space-1", "post_id": "none", "message": "x"}, "no message 'none'"),
    ("chat_add_reaction", {"channel_id": "space-1", "post_id": "c1", "emoji_name": "zorp"}, "known names"),
    ("chat_delete_post", {"channel_id": "space-1", "post_id": "none"}, "no message 'none'"),
    ("calendar_list_events", {"offset": 50}, "none at offset 50"),
    ("calendar_read_event", {"event_id": "u9x"}, "no event 'u9x'"),
    ("calendar_create_event", {"summary": "x", "start": TEN, "end": NINE}, "ends before it starts"),
    ("calendar_update_event", {"event_id": "u1"}, "needs at least one of"),
    ("calendar_delete_event", {"event_id": "zz"}, "calendar_list_events lists them"),
    ("search_world", {"query": "?!"}, "holds no word"),
    ("output_read_page", {"file_path": "note.txt", "offset": 99}, "fewer than offset 99"),
    ("output_read_page", {"file_path": "red.png"}, "is not a text file"),
    ("code_exec", {"code": "import os\nprint(os.getcwd())"}, "takes a shell command line"),
]  # fmt: skip


def make_world(world: Path, apps: Path) -> None:
    """Small real files, some of them damaged, and the state of the three apps."""
    import docx
    import openpyxl
    import pptx
    from PIL import Image
    from reportlab.pdfgen.canvas import Canvas

    world.mkdir()
    (world / "note.txt").write_text("the quick fox\n\n\n")
    (world / "rows.csv").write_text("a,b\n1,2\n")
    for suffix in ("docx", "xlsx", "pptx", "pdf"):
        (world / f"broken.{suffix}").write_bytes(
            (b"%PDF-1.7\n" if suffix == "pdf" else b"PK\x03\x04") + b"\x00\xff" * 50
        )
    Image.new("RGB", (20, 10), (255, 0, 0)).save(world / "red.png")
    word = docx.Document()
    word.add_paragraph("one")
    word.add_paragraph("two")
    word.save(str(world / "good.docx"))
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in (["item", "cost"], ["glass", 4]):
        book.active.append(row)
    book.save(world / "good.xlsx")
    deck = pptx.Presentation()
    deck.slides.add_slide(deck.slide_layouts[1])
    deck.save(str(world / "good.pptx"))
    buffer = BytesIO()
    page = Canvas(buffer)
    page.drawImage(str(world / "red.png"), 50, 50)
    page.save()
    (world / "drawn.pdf").write_bytes(buffer.getvalue())
    make_apps(apps)


def make_apps(apps: Path) -> None:
    for name in ("mail", "calendar", "chat/Groups/space-1"):
        (apps / name).mkdir(parents=True)
    mail = {"mail_id": "m1", "timestamp": "2026-03-01T08:00:00Z", "from_email": "desk@p.example", "subject": "Offer",
            "to": ["agent@w.example", "boss@w.example"], "body": "take it", "thread_id": "m1"}  # fmt: skip
    (apps / "mail/mails.json").write_text(json.dumps([mail]))
    event = {"id": "u1", "summary": "Review", "start": NINE, "end": TEN}
    (apps / "calendar/events.json").write_text(json.dumps({"events": [event]}))
    person = {"name": "Desk", "email": "desk@p.example", "user_type": "Human"}
    post = {"creator": person, "created_date": "2026-03-01T08:00:00Z", "text": "good morning", "topic_id": "t1",
            "message_id": "c1", "reactions": []}  # fmt: skip
    (apps / "chat/Groups/space-1/group_info.json").write_text(json.dumps({"name": "Space", "members": [person]}))
    (apps / "chat/Groups/space-1/messages.json").write_text(json.dumps({"messages": [post]}))


@pytest.fixture(scope="module")
def office(open_office: Callable[..., Sandbox], tmp_path_factory: pytest.TempPathFactory) -> SandboxTools:
    root = tmp_path_factory.mktemp("office-world")
    make_world(root / "world", root / "apps")
    return SandboxTools(open_office(root / "world", root / "apps"))


def test_every_tool_has_a_row_for_success_and_one_for_error() -> None:
    inside = {spec.name for spec in SURFACE.values() if spec.server in INSIDE_SERVERS}
    assert {name for name, _, _ in GOOD} == inside
    assert {name for name, _, _ in BAD} == inside


@pytest.mark.parametrize(("name", "arguments", "words"), BAD, ids=[row[0] for row in BAD])
def test_an_error_says_what_to_do(office: SandboxTools, name: str, arguments: dict[str, Any], words: str) -> None:
    seen = office.call(name, arguments)
    assert seen.is_error, seen.text
    assert words in seen.text
    assert seen.text.startswith("error: ")
    assert " at 0x" not in seen.text


def test_every_tool_answers_with_the_state_it_left(office: SandboxTools) -> None:
    for name, arguments, words in GOOD:
        seen = office.call(name, arguments)
        assert not seen.is_error, (name, seen.text)
        assert words in seen.text, (name, words, seen.text)
