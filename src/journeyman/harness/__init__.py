"""The loops that turn observations into the policy's next call.

Promises: a loop only appends to its context, and an edit of the conversation is a segment of its own; it ends with one
stop reason of a closed list; it never sees a reward; a malformed call never ends a trial unless its policy says so.
What a harness is lies in data: ``Harness`` for the two framings of the quickstart, ``HarnessSpec`` in
``registry.SPECS`` for real models, whose loops ``registry.LOOPS`` makes.
"""

from journeyman.harness.budget import Budget, Prices, Spent
from journeyman.harness.conversation import Conversation, Turn
from journeyman.harness.protocol import HARNESSES, Harness, Loop, LoopSampling, StopReason
from journeyman.harness.registry import LOOPS, SPECS, LoopFactory
from journeyman.harness.spec import HarnessSpec

__all__ = [
    "HARNESSES",
    "LOOPS",
    "SPECS",
    "Budget",
    "Conversation",
    "Harness",
    "HarnessSpec",
    "Loop",
    "LoopFactory",
    "LoopSampling",
    "Prices",
    "Spent",
    "StopReason",
    "Turn",
]
