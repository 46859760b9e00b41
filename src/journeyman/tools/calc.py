"""calc: exact arithmetic on numbers."""

from __future__ import annotations

from journeyman.documents.calc import BadExpression, evaluate
from journeyman.tools.protocol import Tool, ToolContext, ToolRefusal, text_arguments


def calc(context: ToolContext, expr: str) -> str:
    """The value of ``+ - *`` and brackets on decimal numbers. Raises ToolRefusal for anything else."""
    try:
        return evaluate(expr)
    except BadExpression:
        raise ToolRefusal("bad expression") from None


TOOL = Tool("calc", calc, text_arguments({"expr": "numbers with + - * and brackets"}), "pure", "Calculate exactly.")
