"""Renderers: how each model family writes a conversation as tokens.

Promise: a prompt starts with the prompt before it and what was sampled after it; text of users, tools and files gives
no special id; what a family's official template would rewrite (earlier thinking, dates) stays as it was and is listed
in docs/tokens.md. A family is data plus the few rules that differ, one file each, one entry in ``FAMILIES``.
"""

from journeyman.tokens.renderers.family import Demonstration, Family, ToolResult, ToolUse
from journeyman.tokens.renderers.glm import GLM45, GLM47
from journeyman.tokens.renderers.gpt_oss import GPT_OSS
from journeyman.tokens.renderers.hermes import QWEN3, QWEN3_2507, QWEN25, SMOLLM2
from journeyman.tokens.renderers.llama3 import LLAMA30, LLAMA31
from journeyman.tokens.renderers.qwen35 import QWEN35, QWEN36, QWEN38
from journeyman.tokens.renderers.renderer import Bridge, Renderer

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        QWEN25,
        QWEN3,
        QWEN3_2507,
        SMOLLM2,
        QWEN35,
        QWEN36,
        QWEN38,
        LLAMA30,
        LLAMA31,
        GLM45,
        GLM47,
        GPT_OSS,
    )
}
"""Every family by name."""

__all__ = ["FAMILIES", "Bridge", "Demonstration", "Family", "Renderer", "ToolResult", "ToolUse"]
