"""The loops that turn observations into the policy's next call.

Promises: a loop only appends to its context; it ends with one stop reason of a closed list; it never sees a reward; a
malformed call never ends a trial by itself. What a harness is lies in data (``Harness``), so a second one differs in
framing, final verb and limits, not in code.
"""

from journeyman.harness.conversation import Conversation, Turn
from journeyman.harness.protocol import HARNESSES, Harness, StopReason

__all__ = ["HARNESSES", "Conversation", "Harness", "StopReason", "Turn"]
