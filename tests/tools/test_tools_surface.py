"""The surface: names and arguments are those that policies meet elsewhere, and every schema can be followed."""

from __future__ import annotations

import subprocess
import sys

import pytest

from journeyman.errors import InputError
from journeyman.tools.checking import fitted
from journeyman.tools.surface import INSIDE_SERVERS, SURFACE, WEB_SERVERS, specs_of

#: Every tool with its arguments, in order; those in brackets may be left out.
TABLE = """
filesystem_list_files [path]
filesystem_read_image_file file_path
filesystem_read_text_file file_path [encoding max_size]
filesystem_search_files pattern [path recursive max_results]
filesystem_get_file_metadata file_path
filesystem_get_directory_tree [path max_depth include_files show_size]
pdfs_create_pdf directory file_name content [metadata page_size]
pdfs_read_pdf_pages file_path [pages]
pdfs_read_image file_path annotation
pdfs_read_page_as_image file_path page_number
pdfs_search_pdf file_path query [case_sensitive whole_word max_results context_chars]
documents_create_document directory file_name content [metadata]
documents_delete_document file_path
documents_get_document_overview file_path
documents_read_document_content file_path [page_index]
documents_read_image file_path annotation
documents_add_content_text file_path identifier text [position]
documents_edit_content_text file_path identifier new_text
documents_delete_content_text file_path identifier [scope collapse_whitespace]
documents_add_image file_path image_path identifier [position width height]
documents_modify_image file_path image_index operation [rotation flip brightness contrast]
documents_apply_formatting file_path identifier [bold italic underline strikethrough font_size font_color]
documents_header_footer file_path action area [section_index content link_to_previous]
documents_page_margins file_path action [section_index top bottom left right]
documents_page_orientation file_path action [section_index orientation]
documents_comments file_path action [identifier text author comment_id]
spreadsheets_create_spreadsheet directory file_name sheets
spreadsheets_delete_spreadsheet file_path
spreadsheets_read_tab file_path [tab_index cell_range include_formulas max_rows max_cols compact]
spreadsheets_read_csv file_path [delimiter encoding has_header row_limit compact]
spreadsheets_list_tabs_in_spreadsheet file_path
spreadsheets_add_tab file_path tab_name [sheet_data]
spreadsheets_delete_tab file_path tab_index
spreadsheets_edit_spreadsheet file_path operations
spreadsheets_add_content_text file_path tab_index cell value
spreadsheets_delete_content_cell file_path tab_index cell
spreadsheets_create_chart file_path sheet data_range chart_type [title position categories_column include_header]
spreadsheets_filter_tab file_path tab_index filters [cell_range match_all use_headers include_diagnostics compact]
presentations_create_deck directory file_name slides [metadata]
presentations_delete_deck file_path
presentations_add_slide file_path [index layout title subtitle bullets]
presentations_edit_slides file_path operations [metadata]
presentations_add_image file_path image_path slide_index [x y width height]
presentations_modify_image file_path slide_index image_index operation [rotation flip brightness contrast \
crop_left crop_top crop_right crop_bottom]
presentations_insert_chart presentation_path slide_index spreadsheet_path sheet_name data_range [chart_type title \
position include_header]
presentations_insert_table file_path slide_index rows [header x y width height]
presentations_add_shape file_path slide_index shape_type [x y width height fill_color line_color line_width text \
text_color font_size]
presentations_read_slides file_path [start end]
presentations_read_completedeck file_path
presentations_read_individualslide file_path slide_index
presentations_read_image file_path annotation
mail_list_mails [limit offset]
mail_read_mail mail_id
mail_search_mail [from_email to_email subject after_date before_date thread_id limit]
mail_send_mail from_email to_email subject body [cc bcc attachments body_format thread_id in_reply_to references]
mail_reply_mail original_mail_id body [attachments body_format]
mail_reply_all_mail original_mail_id body [attachments body_format]
mail_forward_mail original_mail_id to_email [body cc bcc attachments body_format]
chat_list_channels [limit page]
chat_get_channel_history channel_id [limit page]
chat_get_thread_replies channel_id post_id
chat_get_user_profile user_id
chat_get_users [limit page]
chat_post_message channel_id message
chat_reply_to_thread channel_id post_id message
chat_add_reaction channel_id post_id emoji_name
chat_delete_post channel_id post_id
calendar_list_events [limit offset]
calendar_read_event event_id
calendar_create_event summary start end [description location attendees colorId reminders recurrence]
calendar_update_event event_id [summary description start end location attendees colorId reminders recurrence]
calendar_delete_event event_id
search_world query [path max_results match_all]
web_search query [max_results]
web_visit url [offset goal]
academic_search query [max_results year_from year_to]
code_exec code
output_read_page file_path [offset limit]
"""

ROWS = TABLE.strip().splitlines()


@pytest.mark.parametrize("row", ROWS, ids=[row.partition(" ")[0] for row in ROWS])
def test_a_tool_has_the_arguments_of_the_table(row: str) -> None:
    name, _, words = row.partition(" ")
    required, _, optional = words.partition("[")
    schema = SURFACE[name].schema
    assert list(schema["required"]) == required.split()
    assert list(schema["properties"]) == [*required.split(), *optional.rstrip("]").split()]


def test_the_surface_holds_the_tools_of_the_table_and_no_others() -> None:
    assert list(SURFACE) == [row.partition(" ")[0] for row in ROWS]


def test_every_default_fits_its_own_schema() -> None:
    for spec in SURFACE.values():
        for name, schema in spec.schema["properties"].items():
            if "default" in schema:
                one = {"type": "object", "properties": {name: schema}, "required": [name]}
                assert fitted({name: schema["default"]}, one)[1] == [], (spec.name, name)


def test_tools_that_change_something_are_not_called_pure() -> None:
    changing = ("create", "delete", "add", "edit", "send", "reply", "forward", "post", "update", "insert", "modify")
    for spec in SURFACE.values():
        if spec.name.partition("_")[2].startswith(changing):
            assert spec.contract in ("idempotent", "unsafe"), spec.name


def test_an_unknown_server_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean spreadsheets"):
        specs_of(["spreadsheet"])
    assert set(INSIDE_SERVERS) | set(WEB_SERVERS) == {spec.server for spec in SURFACE.values()}


def test_the_surface_is_read_without_heavy_libraries() -> None:
    heavy = "{'openpyxl', 'docx', 'pptx', 'httpx', 'pypdfium2', 'PIL', 'torch', 'reportlab'}"
    code = f"import sys, journeyman.tools; print(sorted({heavy} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert found.stdout.strip() == "[]"
