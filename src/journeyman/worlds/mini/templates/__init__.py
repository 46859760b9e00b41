"""The families of tasks, one file each. A family is asked in one sentence and has one checkable answer."""

from __future__ import annotations

from journeyman.worlds.mini.protocol import BoundTask as BoundTask
from journeyman.worlds.mini.protocol import Control as Control
from journeyman.worlds.mini.protocol import Step as Step
from journeyman.worlds.mini.protocol import Template
from journeyman.worlds.mini.templates.cross import CROSS
from journeyman.worlds.mini.templates.look import LOOK
from journeyman.worlds.mini.templates.own import OWN
from journeyman.worlds.mini.templates.rep import REP
from journeyman.worlds.mini.templates.sum2 import SUM2

TEMPLATES: dict[str, Template] = {"look": LOOK, "sum2": SUM2, "cross": CROSS, "own": OWN, "rep": REP}
"""Family -> template, in the order in which worlds are stratified over them."""
