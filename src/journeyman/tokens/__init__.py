"""Tokens as the truth of every conversation.

Promise: a context is a list of ids that only grows; each id carries its source, loss mask, logprob, weight version and
turn; what was sampled is never encoded again; text is a view; no text, whatever it spells, encodes to a special id, so
a file that contains ``<|im_end|>`` cannot forge a turn.
"""

from journeyman.tokens.audit import AuditReport, retokenised
from journeyman.tokens.context import SOURCES, Columns, Context, Segment, Source, segment_columns
from journeyman.tokens.framing import FRAMINGS, Framing, call_ids, close_ids, observation_ids, open_context
from journeyman.tokens.gap import Gap, logprob_gap
from journeyman.tokens.spans import Call, Malformed, ParsedTurn, parse_turn
from journeyman.tokens.tokenizer import SPECIAL_TOKENS, Tokenizer, train

__all__ = [
    "FRAMINGS",
    "SOURCES",
    "SPECIAL_TOKENS",
    "AuditReport",
    "Call",
    "Columns",
    "Context",
    "Framing",
    "Gap",
    "Malformed",
    "ParsedTurn",
    "Segment",
    "Source",
    "Tokenizer",
    "call_ids",
    "close_ids",
    "logprob_gap",
    "observation_ids",
    "open_context",
    "parse_turn",
    "retokenised",
    "segment_columns",
    "train",
]
