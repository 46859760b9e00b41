"""Task templates of offices: one file per template, grouped by domain, each a frozen value in ``TEMPLATES``.

``journeyman worlds new-template`` writes a new one; ``docs/worlds.md`` says what it must provide.
"""

from __future__ import annotations

from journeyman.worlds.template import Template
from journeyman.worlds.templates.consulting.mc1_retention import MC1
from journeyman.worlds.templates.law.cl1_clauses import CL1

TEMPLATES: dict[str, Template] = {
    "CL1": CL1(),
    "MC1": MC1(),
}
"""Id -> template, in the order in which a build takes them in turn."""
