"""Black-box chat models behind any service that speaks the OpenAI protocol: for evaluation, never for training.

Promise: what the model answered is kept as it came, reasoning and tool-call fields included, so that it can be sent
back unchanged; every try has a limit and every call a deadline; a service is asked no faster than it allows; each
answered try is booked in tokens and, where a price is known, in dollars at once; an unknown price is none, not zero.
"""

from journeyman.engines.openai.engine import OpenaiEngine, TextOnly
from journeyman.engines.openai.prices import Price, PriceTable, read_prices
from journeyman.engines.openai.reply import ChatReply, TokenUsage, ToolCall
from journeyman.engines.openai.retries import RateLimited, ServiceRefused, ServiceUnavailable

__all__ = [
    "ChatReply",
    "OpenaiEngine",
    "Price",
    "PriceTable",
    "RateLimited",
    "ServiceRefused",
    "ServiceUnavailable",
    "TextOnly",
    "TokenUsage",
    "ToolCall",
    "read_prices",
]
