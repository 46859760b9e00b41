"""Offices: whole, true, readable where their facts say, and the same bytes wherever they are made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import defaultdict
from io import BytesIO
from zipfile import ZipFile

import pytest

from journeyman.documents import open_document
from journeyman.documents.node import Node
from journeyman.worlds.office import Office, make_office
from journeyman.worlds.render.writing import MAILBOX
from journeyman.worlds.truth.invariants import broken

SEED = 7
PLAIN = (".txt", ".md", ".py", ".toml")
"""Suffixes without a tree: their facts lie at lines."""


@pytest.fixture(scope="module")
def office() -> Office:
    return make_office(SEED, "train", 0)


def test_what_must_hold_of_the_truth_holds(office):
    assert broken(office.truth) == {}


def test_every_fact_lies_where_its_rendering_says(office):
    assert missing_renderings(office) == []


def test_every_artefact_names_the_event_it_came_from(office):
    events = {row["id"] for row in office.truth.rows("SELECT id FROM event")}
    assert set(office.source_of.values()) <= events
    assert set(office.documents) <= set(office.source_of)


def test_offices_have_sixty_files_in_seven_formats_on_150_pages(office):
    """Pages of PDFs only: those of Word files and slides come on top."""
    from pypdfium2 import PdfDocument

    sizes = []
    for one in (office, make_office(SEED, "train", 2), make_office(SEED, "test", 1)):
        pages = sum(len(PdfDocument(data)) for path, data in one.files.items() if path.endswith(".pdf"))
        sizes.append((len(one.files), len({path.rpartition(".")[2] for path in one.files}), pages))
    print(sizes)
    files, formats, pages = (sorted(column)[1] for column in zip(*sizes, strict=True))
    assert files >= 60
    assert formats >= 7
    assert pages >= 150


def test_the_canary_stands_in_nothing_visible(office):
    everything = {**office.files, **office.apps}
    assert not [path for path, data in everything.items() if office.canary.encode() in opened(data)]
    assert office.canary not in "".join(everything)


def test_a_string_inside_a_container_is_found(office):
    path = office.of_kind("spa")[0].path
    assert b"Share Purchase Agreement" not in office.files[path]
    assert b"Share Purchase Agreement" in opened(office.files[path])


@pytest.mark.thorough
def test_an_office_is_the_same_in_other_processes_zones_hash_seeds_and_directories(office, tmp_path):
    script = f"from journeyman.worlds.office import make_office\no = make_office({SEED}, 'train', 0)\n" + (
        "from journeyman.digest import sha256\nprint(o.digest, sha256(o.truth.dump()), o.canary)"
    )
    prints = set()
    for zone, hash_seed in (("Asia/Kathmandu", "1"), ("America/St_Johns", "77")):
        env = {**os.environ, "TZ": zone, "PYTHONHASHSEED": hash_seed, "LC_ALL": "C"}
        place = tmp_path / hash_seed
        place.mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script], env=env, cwd=place, capture_output=True, text=True, check=True, timeout=120
        )
        prints.add(done.stdout)
    assert len(prints) == 1
    assert prints.pop().split()[0] == office.digest


def opened(data: bytes) -> bytes:
    """A file's bytes, and those of its members if it is a zip."""
    if not data.startswith(b"PK"):
        return data
    with ZipFile(BytesIO(data)) as container:
        return data + b"".join(container.read(name) for name in container.namelist())


def missing_renderings(office: Office) -> list[str]:
    """Renderings whose locator finds no place, or a place that does not hold the surface form."""
    by_path = defaultdict(list)
    for one in office.renderings:
        by_path[one.path].append(one)
    everything = {**office.files, **{f"apps/{path}": data for path, data in office.apps.items()}}
    assert set(by_path) <= set(everything)
    assert f"apps/{MAILBOX}" in by_path
    wrong = []
    for path, renderings in by_path.items():
        texts = texts_of(everything[path], path)
        scanned = scanned_pages(everything[path], path)
        for one in renderings:
            if one.locator not in scanned and squashed(one.surface) not in squashed(texts.get(one.locator, "")):
                wrong.append(f"{path} {one.locator}: {one.fact_id} {one.surface!r}")
    return wrong


def texts_of(data: bytes, path: str) -> dict[str, str]:
    if path.endswith(PLAIN):
        return {f"line:{n}": line for n, line in enumerate(data.decode().split("\n"), start=1)}
    return {node.address: text_below(node) for node in open_document(data, path).walk()}


def scanned_pages(data: bytes, path: str) -> set[str]:
    """Pages whose facts are pixels."""
    if not path.endswith(".pdf"):
        return set()
    return {node.address for node in open_document(data, path).nodes if node.attributes.get("text_layer")}


def text_below(node: Node) -> str:
    return " ".join([node.text, *map(text_below, node.children)])


def squashed(text: str) -> str:
    return "".join(text.split())
