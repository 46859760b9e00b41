"""Instructions in other words: by an endpoint once, from what is kept ever after, and never with another fact."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from journeyman.digest import directory_sha256
from journeyman.trials.worldgates.building import Order, build
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.diversify import Wording, WordingFailed
from journeyman.worlds.stats import statistics_of
from journeyman.worlds.template import Bound

ORDER = Order(7, 1, 4, "train", ("MC1", "IB1", "S1", "CL1"), "static", "test-words")
INSTRUCTION = """The board of Alder Group wants to know who left between March and June, and for which reason.

Save `artifacts/a.json` with 3 keys, none of which may be left out whatever the reason may be.

- `who`: the name as the personnel system has it, in capital letters"""


class Words(BaseHTTPRequestHandler):
    """Puts other words around a text; drops a slot where the text speaks of keys."""

    protocol_version = "HTTP/1.1"
    asked = 0

    def do_POST(self) -> None:
        type(self).asked += 1
        text = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        said = f"Please see to this: {text}"
        if "keys" in text:
            said = re.sub(r"\{\{0\}\}", "it", said)
        reply = json.dumps({"choices": [{"message": {"content": said}}], "usage": {"total_tokens": 21}}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Words)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def bound() -> Bound:
    return Bound("IB1", "banking", "train-0000", INSTRUCTION, {"who": "Alder Group"}, {"a": 1}, (), ("a.json",), (), {},
                 knobs=Knobs())  # fmt: skip


def test_prose_is_reworded_lists_stay_and_a_lost_fact_keeps_the_text(endpoint: str, tmp_path: Path):
    first, found = Wording("m", tmp_path, endpoint).worded(bound())
    one, two, three = first.instruction.split("\n\n")
    prose, *rest = INSTRUCTION.split("\n\n")
    assert one == f"Please see to this: {prose}"
    assert [two, three] == rest
    assert [bool(paragraph.refused) for paragraph in found] == [False, True]
    again, kept = Wording("m", tmp_path).worded(bound())
    assert again == first
    assert all(paragraph.is_cached for paragraph in kept)


def test_who_does_not_answer_stops_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("journeyman.worlds.diversify.TRIES", 1)
    with pytest.raises(WordingFailed, match="gave no other words in 1 tries"):
        Wording("m", tmp_path, "http://127.0.0.1:9/v1").worded(bound())


@pytest.mark.thorough
def test_a_build_in_other_words_is_made_again_offline_byte_for_byte(endpoint: str, tmp_path: Path):
    plain = build(Order(**{**vars(ORDER), "wording": ""}), tmp_path / "plain")
    first = build(ORDER, tmp_path / "first", endpoint=(endpoint, ""))
    asked = Words.asked
    (tmp_path / "again").mkdir()
    (tmp_path / "first" / "wording").rename(tmp_path / "again" / "wording")
    again = build(ORDER, tmp_path / "again")
    assert plain.tasks == first.tasks == again.tasks
    assert Words.asked == asked > 0
    assert directory_sha256(first.out / "tasks") == directory_sha256(again.out / "tasks")
    told = [(out / "tasks/train" / first.tasks[0] / "instruction.md").read_text() for out in (plain.out, first.out)]
    assert told[0] != told[1]
    assert told[1].replace("Please see to this: ", "") == told[0]
    assert statistics_of(again.out)["cost"]["llm_tokens"] > 0
