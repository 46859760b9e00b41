"""The company's rules for assistants: how long meetings take, and who may let which documents out."""

from __future__ import annotations

from datetime import timedelta

from journeyman.worlds.draft import Draft

KINDS = ("Review", "Briefing", "Workshop", "Consultation", "Hearing")
MINUTES = (30, 45, 60, 75, 90, 120, 150)
OWNERS = {"finance": "controller", "legal": "counsel", "commercial": "sales", "people": "hrbp", "market": "marketing",
          "procurement": "procurement", "reporting": "fpa"}  # fmt: skip
"""Folder -> role that decides about its documents."""


def simulate_rules(draft: Draft) -> None:
    """Draw the lengths, and record them with the owners of folders."""
    rng = draft.rng("rules")
    day = draft.setting.today - timedelta(days=200)
    event = draft.event("handbook issued", day, "Handbook for assistants issued")
    for kind, minutes in zip(KINDS, rng.sample(MINUTES, len(KINDS)), strict=True):
        row = {"id": f"handbook:{kind}", "model": "handbook", "name": kind, "value": minutes}
        draft.truth.add("assumption", row, event=event, at=day.isoformat())
    for folder, role in OWNERS.items():
        owner = draft.roles[role]["email"]
        row = {"id": f"handbook:{folder}", "model": "handbook owner", "name": folder, "value": owner}
        draft.truth.add("assumption", row, event=event, at=day.isoformat())
