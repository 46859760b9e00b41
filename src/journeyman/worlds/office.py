"""A whole office from a seed: its truth, its files, and the traps in them. Same seed, split and index, same bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from journeyman.digest import tree_sha256
from journeyman.worlds.draft import Draft
from journeyman.worlds.events.emitters import emit_all
from journeyman.worlds.plan import Document, Fact, Planted, Rendering
from journeyman.worlds.render.places import Style
from journeyman.worlds.render.writing import render_plan
from journeyman.worlds.simulate.setting import Setting, draw_setting
from journeyman.worlds.simulate.stages import simulate
from journeyman.worlds.splits import SPLITS
from journeyman.worlds.streams import stage_stream
from journeyman.worlds.traps.planting import located, plant
from journeyman.worlds.truth import Truth


@dataclass(frozen=True)
class Office:
    """One world. ``files`` and ``apps`` are what an agent may see; nothing else of it may be shown to one.

    Attributes:
        id: ``split-index``, e.g. ``train-0007``.
        split: one of ``splits.SPLITS``.
        industry, style: keys of the packs.
        truth: the bitemporal store.
        files: path -> bytes below the world's root.
        apps: path -> bytes below the state directory of mail, chat and calendar.
        renderings: where each stated fact can be read.
        planted: the traps, each with its wrong answers.
        canary: a UUID that stands in no visible file; a file or answer that holds it has seen the truth.
        today: ISO date on which the agent works.
        setting: names, places, number formats.
        facts: id -> fact, everything that renderings name.
        documents: path -> what the file is, who wrote it when, from which event.
        roles: ``cfo`` -> row of ``person``, and the like.
        source_of: path, Message-ID, ``#channel/ts`` or calendar id -> event it came from.
    """

    id: str
    split: str
    industry: str
    style: str
    truth: Truth
    files: Mapping[str, bytes]
    apps: Mapping[str, bytes]
    renderings: tuple[Rendering, ...]
    planted: tuple[Planted, ...]
    canary: str
    today: str
    setting: Setting
    facts: Mapping[str, Fact]
    documents: Mapping[str, Document]
    roles: Mapping[str, Mapping[str, str]]
    source_of: Mapping[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """sha256 over names and contents of everything visible."""
        return tree_sha256({**self.files, **{f"apps/{path}": data for path, data in self.apps.items()}})

    def where(self, fact_id: str) -> tuple[Rendering, ...]:
        """The places where a fact can be read."""
        return self._places.get(fact_id, ())

    @cached_property
    def _places(self) -> Mapping[str, tuple[Rendering, ...]]:
        found: dict[str, tuple[Rendering, ...]] = {}
        for one in self.renderings:
            found[one.fact_id] = (*found.get(one.fact_id, ()), one)
        return found

    def of_kind(self, kind: str, subject: str = "") -> list[Document]:
        """Documents of a kind (about ``subject``, if given), by path."""
        found = [one for one in self.documents.values() if one.kind == kind and subject in ("", one.subject)]
        return sorted(found, key=lambda one: one.path)

    def trap(self, trap: str, site: str = "") -> Planted | None:
        """The first planted trap of this kind whose site begins with ``site``; None if there is none."""
        return next((one for one in self.planted if one.trap == trap and one.site.startswith(site)), None)


def make_office(seed: int, split: str, index: int) -> Office:
    """Make one world in memory.

    Args:
        seed: root seed.
        split: one of ``splits.SPLITS``.
        index: position in the split, from 0.

    Raises:
        ValueError: an unknown split or a negative index.
    """
    if split not in SPLITS or index < 0:
        raise ValueError(f"no world {split!r} {index}; splits: {', '.join(SPLITS)}; index from 0")
    setting = draw_setting(stage_stream(seed, split, index, "setting"), split)
    draft = Draft(seed, split, index, setting)
    simulate(draft)
    plant(draft, "truth")
    emit_all(draft)
    plant(draft, "plan")
    layout = setting.layout
    style = Style(
        layout["font"], layout["page"], layout["size"], layout["margin"], layout["heading"],
        datetime.combine(setting.today, datetime.min.time()),
    )  # fmt: skip
    people = {row["id"]: row for row in draft.truth.rows("SELECT id, name, email FROM person ORDER BY id")}
    written = render_plan(draft.plan, style, people, setting.company)
    canary = str(UUID(int=draft.rng("canary").getrandbits(128), version=4))
    return Office(
        f"{split}-{index:04d}", split, setting.industry, setting.style, draft.truth, written.files, written.apps,
        written.renderings, located(draft.plan.planted, written.renderings), canary, setting.today.isoformat(), setting,
        draft.plan.facts, draft.plan.documents, draft.roles, draft.plan.source_of,
    )  # fmt: skip
