"""What engineers and scientists of the company keep: a framework award, water samples, battery tests, data sets.

Events only; what they measured is drawn where it is written down, each from a stream of its own.
"""

from __future__ import annotations

from datetime import timedelta

from journeyman.worlds.draft import Draft

EVENTS = (
    ("award prepared", 34, "Quotes for a framework contract collected"),
    ("quote corrected", 12, "A supplier can deliver less than it quoted"),
    ("water sampled", 30, "Drinking water of the buildings analysed"),
    ("batteries aged", 40, "Battery modules of the backup supply aged at several temperatures"),
    ("payments exported", 18, "Payment history exported for a model of late payment"),
    ("load logged", 17, "Load of the building logged for a model of its demand"),
)
"""Kind, days before today, summary."""


def simulate_technical(draft: Draft) -> None:
    """Record the events."""
    for kind, back, summary in EVENTS:
        draft.event(kind, draft.setting.today - timedelta(days=back), summary)
