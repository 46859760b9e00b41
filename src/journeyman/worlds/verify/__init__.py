"""Verifiers as data: checks that a template declares, and the program that runs them where no agent ever was.

Promises: a check is JSON and names a function of ``inside/worldverify``; the reward is the product of gates and the
weighted mean of scored checks; a list of checks that cannot tell work from nothing is refused before it is published;
the program grades through ``tasks.verify.BatchVerifier`` and through Harbor alike.
"""

from __future__ import annotations

from journeyman.worlds.verify.checks import RUBRIC, Check, Problem, lint, rubric_of, truth_of
from journeyman.worlds.verify.program import check_source, program_archive, verifier_environment

__all__ = [
    "RUBRIC",
    "Check",
    "Problem",
    "check_source",
    "lint",
    "program_archive",
    "rubric_of",
    "truth_of",
    "verifier_environment",
]
