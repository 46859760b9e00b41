"""The verifier's program as it is shipped: one check source for every task, an archive beside it, an environment.

``check_source`` is the same for all tasks, so a batch shares one warm sandbox. It finds ``worldverify`` and
``officedocs`` in the verifier's environment, where the server has loaded them before the first fork, or in
``verifier.zip`` beside itself, where Harbor runs it.
"""

from __future__ import annotations

import io
import zipfile
from functools import cache
from pathlib import Path

import journeyman.documents
from journeyman.digest import sha256
from journeyman.documents.commands import PACKAGE
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment

ARCHIVE = "verifier.zip"
PROGRAM = "worldverify"
SOURCES = {
    PACKAGE: Path(journeyman.documents.__file__).parent,
    PROGRAM: Path(__file__).parent / "inside" / PROGRAM,
}
"""Package beside the check -> directory it is copied from."""

DISTRIBUTIONS: tuple[str, ...] = (
    "charset-normalizer",
    "formualizer",
    "icalendar",
    "lxml",
    "olefile",
    "pdfplumber",
    "pypdf",
    "pypdfium2",
    "python-calamine",
    "python-dateutil",
)
"""What reading deliverables needs; nothing that writes."""

_CHECK = '''\
"""Grades a deliverable by the checks in truth.json; the program lies in the environment, or in verifier.zip here."""

import json
import os
import sys

PRELOAD = "worldverify.warm"
HERE = os.environ.get("TESTS_DIR", "/tests")
ARCHIVES = ("/opt/agent/lib", "/opt/grader/checks/@ARCHIVE@.zip", HERE + "/verifier.zip")
sys.path[:0] = [path for path in ARCHIVES if path not in sys.path]

from worldverify import MalformedDeliverable, grade  # noqa: E402


def delivered(root):
    """Regular files below a directory by relative name; links are not followed."""
    found = {}
    for folder, folders, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) <= 16_000_000:
                with open(path, "rb") as file:
                    found[os.path.relpath(path, root)] = file.read()
    return found


def main():
    """Write reward.json and details.json for what lies in the collected artifacts."""
    logs = os.environ.get("LOGS_DIR", "/logs")
    with open(HERE + "/truth.json", "rb") as file:
        truth = json.load(file)
    artifacts = delivered(logs + "/artifacts") or delivered("/ws/artifacts")
    try:
        details = {"kind": "scored", **grade(artifacts, truth)}
    except MalformedDeliverable as error:
        details = {"kind": "malformed_deliverable", "reward": 0.0, "explain": str(error)}
    for name, value in (("details", details), ("reward", {"reward": details["reward"]})):
        with open(logs + "/verifier/" + name + ".json", "w") as file:
            json.dump(value, file)


if __name__ == "__main__":
    main()
'''

TEST_SCRIPT = """\
#!/bin/sh
# Grades what was delivered; the verifier's sandbox alone holds the truth.
exec python3 -I -S "${TESTS_DIR:-/tests}/check.py"
"""


@cache
def program_archive() -> bytes:
    """The program and the document readers as a zip that Python imports from. Same sources, same bytes."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for package, root in SOURCES.items():
            for path in sorted(root.rglob("*.py")):
                info = zipfile.ZipInfo(f"{package}/{path.relative_to(root).as_posix()}", (1980, 1, 1, 0, 0, 0))
                info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    return made.getvalue()


def verifier_environment(root: Path) -> AgentEnvironment:
    """Build, or find below ``root``, the environment that grades office tasks.

    Raises:
        EnvironmentMissing: a distribution is not installed.
    """
    return build_environment(root, distributions=DISTRIBUTIONS, packages=SOURCES)


@cache
def check_source() -> bytes:
    """``tests/check.py``; it names the archive that it was made for."""
    return _CHECK.replace("@ARCHIVE@", sha256(program_archive())).encode()
