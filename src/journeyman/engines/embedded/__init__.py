"""The embedded engine: Hugging Face Qwen3 and Llama weights decoded in this process, many trials at a time.

Promise: what it samples follows the model's own distribution (logprobs agree with the ``transformers`` forward to 1e-4
in float32); rows join, answer, wait for no one and leave at any step; work follows the number of live rows; memory is
bounded by rows x max_len from the start.
"""

from journeyman.engines.embedded.engine import EmbeddedEngine
from journeyman.engines.embedded.shape import DecoderShape

__all__ = ["DecoderShape", "EmbeddedEngine"]
