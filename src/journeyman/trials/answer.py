"""The final answer of a trial as a deliverable."""

from __future__ import annotations

import json

DELIVERABLE = "answer.json"
"""The deliverable that holds a final answer."""


def answer_file(answer: str) -> bytes:
    """Its bytes."""
    return json.dumps({"answer": answer}).encode()
