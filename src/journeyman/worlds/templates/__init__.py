"""The families of tasks, one file each. A family is asked in one sentence and has one checkable answer."""

from __future__ import annotations

from journeyman.worlds.protocol import BoundTask as BoundTask
from journeyman.worlds.protocol import Control as Control
from journeyman.worlds.protocol import Step as Step
from journeyman.worlds.protocol import Template
from journeyman.worlds.templates.cross import CROSS
from journeyman.worlds.templates.look import LOOK
from journeyman.worlds.templates.own import OWN
from journeyman.worlds.templates.rep import REP
from journeyman.worlds.templates.sum2 import SUM2

TEMPLATES: dict[str, Template] = {"look": LOOK, "sum2": SUM2, "cross": CROSS, "own": OWN, "rep": REP}
"""Family -> template, in the order in which worlds are stratified over them."""
