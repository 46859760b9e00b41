"""What a sandbox of the quickstart can read: its world and its tools, never the seed, a canary or the program."""

from __future__ import annotations

from journeyman.ladder.oracles import spec_of
from journeyman.ladder.workshop import Workshop
from journeyman.worlds.mini.world import make_world

SCAN = """
words() { for pair in "$@"; do printf '%s%s\\n' "${pair%%|*}" "${pair##*|}"; done; }
found=0
# programs of the operating system below /usr are the host's packages and take a minute to read: left out
for place in $(ls -A / | grep -vE '^(proc|dev|usr|bin|sbin|lib|lib64)$'); do
  if words "$@" | grep -rlaFs -f - "/$place"; then found=1; fi
done
for file in /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/[0-9]*/mountinfo /proc/[0-9]*/maps /proc/mounts; do
  if words "$@" | grep -qaFs -f - "$file"; then echo "$file"; found=1; fi
done
exit $found
"""


def test_neither_seed_nor_canaries_occur_in_any_readable_place(prepared: Workshop) -> None:
    recipe = prepared.recipe
    canaries = [make_world(recipe.seed, split, 0).canary for split in ("train", "dev", "test")]
    assert scan(prepared, [str(recipe.seed), *canaries]) == (0, "")


def test_the_scan_finds_what_is_really_there(prepared: Workshop) -> None:
    code, places = scan(prepared, ["Client"])
    assert code == 1
    assert "/ws/" in places


def scan(workshop: Workshop, words: list[str]) -> tuple[int, str]:
    """Status 1 and the places if a word occurs; words come in two halves, so that the scan does not find itself."""
    task = workshop.tasks("train")[0]
    sandbox = workshop.provider.create(spec_of(workshop, task))
    halves = [f"{word[: len(word) // 2]}|{word[len(word) // 2 :]}" for word in words]
    try:
        result = sandbox.exec(["sh", "-c", SCAN, "scan", *halves], deadline_s=60)
        return result.return_code, result.stdout.decode()
    finally:
        sandbox.destroy()


def test_the_program_cannot_be_imported_inside(prepared: Workshop) -> None:
    task = prepared.tasks("train")[0]
    sandbox = prepared.provider.create(spec_of(prepared, task))
    try:
        inside = sandbox.exec(["python3", "-c", "import journeyman"], deadline_s=30)
        readers = sandbox.exec(["python3", "-c", "import officedocs, openpyxl, docx, pdfplumber"], deadline_s=30)
    finally:
        sandbox.destroy()
    assert (inside.return_code, b"No module named 'journeyman'" in inside.stderr) == (1, True)
    assert readers.return_code == 0
