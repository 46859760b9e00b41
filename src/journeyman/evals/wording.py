"""How a score is written, everywhere the same: the value, its interval clipped to what is possible, and its n."""

from __future__ import annotations

from journeyman.evals.score import Difference, Score

NOT_AVAILABLE = "n/a"


def number(value: float | None, digits: int = 3) -> str:
    """A share or score with fixed digits; ``n/a`` for None; never ``-0.000``."""
    if value is None:
        return NOT_AVAILABLE
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text


def signed(value: float | None, digits: int = 3) -> str:
    """A difference with its sign."""
    text = number(value, digits)
    return text if value is None or text.startswith("-") or float(text) == 0 else f"+{text}"


def clipped(score: Score) -> tuple[float, float] | None:
    """The interval of a score within [0, 1], for printing; the record keeps the raw ends."""
    if score.low is None or score.high is None:
        return None
    return max(0.0, score.low), min(1.0, score.high)


def score_interval(score: Score) -> str:
    """``[0.880, 1.000]``, or ``n/a`` (never +-0)."""
    ends = clipped(score)
    return f"[{number(ends[0])}, {number(ends[1])}]" if ends else NOT_AVAILABLE


def difference_interval(difference: Difference) -> str:
    """``[+0.695, +0.835]`` within [-1, 1], or ``n/a``."""
    if difference.low is None or difference.high is None:
        return NOT_AVAILABLE
    return f"[{signed(max(-1.0, difference.low))}, {signed(min(1.0, difference.high))}]"


def sample_size(score: Score) -> str:
    """``100 tasks, 200 trials, 100 worlds``, with what was left out."""
    parts = [f"{score.n_tasks} tasks, {score.n_trials} trials, {score.n_worlds} worlds"]
    parts += [f"{count} {name.replace('_', ' ')} left out" for name, count in score.excluded.items() if count]
    if score.n_tasks_dropped:
        parts.append(f"{score.n_tasks_dropped} tasks without enough graded trials")
    return "; ".join(parts)


def score_text(score: Score | None) -> str:
    """``0.945 [0.880, 1.000]``."""
    return NOT_AVAILABLE if score is None else f"{number(score.value)} {score_interval(score)}"


def difference_text(difference: Difference) -> str:
    """``+0.765 [+0.695, +0.835]``, with ``below MDE`` when a claimed effect is smaller than could be detected."""
    text = f"{signed(difference.value)} {difference_interval(difference)}"
    return f"{text}, below MDE" if below_detectable(difference) else text


def below_detectable(difference: Difference) -> bool:
    """True when a difference that is called a winner is smaller than the minimum detectable effect."""
    if difference.word == "tie" or difference.mde is None or difference.value is None:
        return False
    return abs(difference.value) < difference.mde
