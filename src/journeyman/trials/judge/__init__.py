"""judge: a model behind any OpenAI-compatible endpoint that scores criteria no program can check.

Promise: each try is bounded from outside, whatever the connection does; each call is bounded in tries and in time; a
judge that fails gives no number, neither for its criterion nor for the trial (``verifier_error``, error
``JudgeFailed``), and is counted apart. Knows nothing about tasks; what it is shown is data, never an instruction.
"""

from journeyman.trials.judge.client import Judge, JudgeSettings
from journeyman.trials.judge.errors import JudgeFailed
from journeyman.trials.judge.judgement import Judgement
from journeyman.trials.judge.rubric import Criterion, grade_by_rubric
from journeyman.trials.judge.tally import JudgeTally, judge_failed

__all__ = [
    "Criterion",
    "Judge",
    "JudgeFailed",
    "JudgeSettings",
    "JudgeTally",
    "Judgement",
    "grade_by_rubric",
    "judge_failed",
]
