"""Dry runs: whose fault a failed trial is, and the policies that need no model.

Promise: a class is decided by rules over the stored record alone, in a fixed order, and every finding says which rule
spoke and what it saw. Statistics and reports stand in ``ladder/dryrun``.
"""

from journeyman.trials.dryrun.classes import CLASSES, FailureClass, Finding
from journeyman.trials.dryrun.classifier import ContextUse, classify_trial

__all__ = ["CLASSES", "ContextUse", "FailureClass", "Finding", "classify_trial"]
