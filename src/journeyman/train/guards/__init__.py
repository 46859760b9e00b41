"""Promise: each guard alarms within five steps of what it watches for, and at most once in 200 steps of a healthy run.

Guards are pure state machines over the figures of a step (``figures``); ``table.GUARDS`` names them. What an alarm
does, stop or warn, is the recipe's choice. A guard that lacks its figure says nothing.
"""

from journeyman.train.guards.figures import Alarm, StepFigures
from journeyman.train.guards.table import GUARDS, Guards, GuardSpec

__all__ = ["GUARDS", "Alarm", "GuardSpec", "Guards", "StepFigures"]
