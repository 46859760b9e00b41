"""The verifier's program in this process: the document readers under the name they have beside it in a sandbox.

They are loaded from a link of that name, as modules of their own, so that nothing of ``journeyman.documents`` changes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import journeyman.documents
from journeyman.worlds.office import Office, make_office

_PLACE = tempfile.TemporaryDirectory()  # until this process ends
(Path(_PLACE.name) / "officedocs").symlink_to(Path(journeyman.documents.__file__).parent)
sys.path.append(_PLACE.name)

from journeyman.worlds.verify import RUBRIC, Check  # noqa: E402
from journeyman.worlds.verify.inside.worldverify import MalformedDeliverable, grade  # noqa: E402

__all__ = ["MalformedDeliverable", "graded", "office", "score"]


def graded(
    checks: Iterable[Check], files: dict[str, bytes], originals: dict[str, bytes] | None = None
) -> dict[str, Any]:
    """Grade files by checks."""
    import base64

    kept = {name: base64.b64encode(data).decode() for name, data in (originals or {}).items()}
    return grade(files, {"checks": [check.as_json() for check in checks if check.fn != RUBRIC], "files": kept})


def score(check: Check, files: dict[str, bytes], originals: dict[str, bytes] | None = None) -> float:
    """The score of one check."""
    found: float = graded([check], files, originals)["checks"][0]["score"]
    return found


@cache
def office() -> Office:
    """One world for all tests that only read it."""
    return make_office(7, "train", 0)
