"""What the policy is shown of results: as much as there is room for, and the notice when it is due."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.harness.act import Act, Result
from journeyman.harness.cutting import MARKER_TOKENS, MIN_RESULT_TOKENS, SpillFiles, cut, fits
from journeyman.harness.spec import HarnessSpec
from journeyman.tokens.renderers import ToolResult
from journeyman.tokens.tokenizer import Tokenizer

FRAME_TOKENS = 32
"""Set aside per result for what the family writes around it."""


class Showing:
    """Cuts results and gives the notice. State: whether the notice went out, and the files that were written."""

    def __init__(self, spec: HarnessSpec, tokenizer: Tokenizer, spill: SpillFiles) -> None:
        self._spec, self._tokenizer, self._spill = spec, tokenizer, spill
        self.is_nudged = False

    def results(self, act: Act, room: int) -> tuple[list[ToolResult], int] | None:
        """The results of a turn within ``room`` tokens and how many were cut; None where they would say nothing."""
        room -= FRAME_TOKENS * (1 + len(act.results))
        share = room // max(1, len(act.results) + (act.user is not None))
        if share < MIN_RESULT_TOKENS and not self._are_short(act, room):
            return None
        limit = min(self._spec.max_result_tokens, max(share, MIN_RESULT_TOKENS))
        shown = [self._cut(result, limit) for result in act.results]
        return shown, sum(one.text is not all_of_it.text for one, all_of_it in zip(shown, act.results, strict=True))

    def squeezed(self, results: Sequence[Result], room: int) -> list[ToolResult]:
        """Results before a summary: what there is room for, or a word that they were left out."""
        limit = room // max(1, len(results)) - FRAME_TOKENS
        if limit >= MIN_RESULT_TOKENS:
            return [self._cut(result, min(limit, self._spec.max_result_tokens)) for result in results]
        return [self._left_out(result, limit) for result in results]

    def nudge(self, used: int) -> str | None:
        """The notice, when ``used`` tokens make it due and it has not gone out."""
        whole = self._spec.budget.context_tokens
        if not self._spec.nudge or self.is_nudged or used < self._spec.nudge_share * whole:
            return None
        return (
            f"[notice: {used} of {whole} context tokens are used ({100 * used // whole} %). "
            "Finish what matters most and give your final answer before the rest runs out.]"
        )

    def _cut(self, result: Result, limit: int) -> ToolResult:
        if fits(self._tokenizer, result.text, limit):
            return ToolResult(result.text, result.name)
        whole = result.spill or self._spill.keep(result.text)
        return ToolResult(cut(self._tokenizer, result.text, limit, whole), result.name)

    def _left_out(self, result: Result, limit: int) -> ToolResult:
        if fits(self._tokenizer, result.text, max(0, limit)):
            return ToolResult(result.text, result.name)
        where = (result.spill or self._spill.keep(result.text)) if limit > MARKER_TOKENS // 2 else None
        return ToolResult(f"[left out{f': it is in {where}' if where else ''}]", result.name)

    def _are_short(self, act: Act, room: int) -> bool:
        texts = [*(result.text for result in act.results), act.user or ""]
        return room > 0 and fits(self._tokenizer, "\n".join(texts), room)
