"""An endpoint as the judge of imported rubric tasks: the score makes a yes or a no, silence makes no reward."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from journeyman.tasks.judge import JudgeQuestion
from journeyman.trials.judge import Judge, JudgeFailed, JudgeSettings
from journeyman.trials.rubric_judge import RubricJudge


class Endpoint(BaseHTTPRequestHandler):
    """Scores 1 where the work says 7, 0.4 where it says 6, and fails otherwise."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        text = body["messages"][-1]["content"].partition("The work:")[2]
        score = 1.0 if "it is 7" in text else 0.4 if "it is 6" in text else None
        content = json.dumps({"score": score, "reason": "read it"})
        reply = json.dumps({"model": "m", "choices": [{"message": {"content": content}}]}).encode()
        self.send_response(200 if score is not None else 400)
        self.send_header("content-length", str(len(reply)))
        self.end_headers()
        self.wfile.write(reply)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on stderr."""


@pytest.fixture
def judge() -> Iterator[RubricJudge]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with Judge(JudgeSettings(f"http://127.0.0.1:{server.server_address[1]}/v1", "m", tries=1)) as client:
        yield RubricJudge(client)
    server.shutdown()
    server.server_close()


def test_a_score_is_a_yes_from_one_half_on_and_a_refusal_is_no_answer(judge: RubricJudge):
    def ask(answer: str, **files: str) -> Any:
        return judge.judge(JudgeQuestion("t", "Add.", "says 7", answer, files, {}))

    assert ask("it is 7").is_met
    assert ask("", notes="it is 7").is_met
    assert not ask("it is 6").is_met
    assert ask("it is 6").rationale == "read it"
    with pytest.raises(JudgeFailed):
        ask("who knows")
