"""Mails of mailbox files: read once, kept beside the agent's temporary files, read anew when a file changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from journeyman.tools.inside.worktools import mail
from journeyman.tools.inside.worktools.workspace import Workspace

ONE = """From a@x.example Thu Jan  1 00:00:00 2026
From: Ann <a@x.example>
To: b@x.example
Date: Thu, 1 Jan 2026 10:00:00 +0000
Subject: {subject}
Message-ID: <{subject}@x.example>

Hello.

"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "apps" / "mail").mkdir(parents=True)
    (tmp_path / "apps" / "mail" / "box.mbox").write_text(ONE.format(subject="first"))
    (tmp_path / "tmp").mkdir()
    return Workspace(str(tmp_path), str(tmp_path / "apps"), str(tmp_path / "tmp"))


def test_a_mailbox_is_parsed_once_and_answers_the_same(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    first = mail.list_mails(workspace)
    monkeypatch.setattr(mail, "_parsed", lambda paths: pytest.fail("read again"))
    assert mail.list_mails(workspace) == first
    assert "first" in first


def test_a_changed_mailbox_is_read_again(workspace: Workspace) -> None:
    assert mail.search_mail(workspace, subject="second").startswith("0 mails")
    box = workspace.apps / "mail" / "box.mbox"
    box.write_text(box.read_text() + ONE.format(subject="second"))
    assert mail.search_mail(workspace, subject="second").startswith("1 mails")


def test_what_was_kept_may_be_damaged_or_impossible_to_keep(workspace: Workspace) -> None:
    first = mail.list_mails(workspace)
    for path in (workspace.temporary / ".mail").iterdir():
        path.write_text("[")
    assert mail.list_mails(workspace) == first
    workspace.temporary = Path("/dev/null/nowhere")
    assert mail.list_mails(workspace) == first
