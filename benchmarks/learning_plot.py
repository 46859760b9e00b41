"""The curves of ``learning.py`` as one SVG: reward over sampled tokens and over CPU-seconds, a line for each seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, GAP = 360, 240, 52, 34, 60
COLOURS = {"journeyman": "#1f6f4a", "trl": "#b4552d"}
AXES = (("sampled_tokens", "sampled tokens"), ("cpu_s", "CPU-seconds"))


def drawing(points: Sequence[dict[str, Any]]) -> str:
    """The SVG text."""
    total = 2 * (WIDTH + LEFT) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {HEIGHT + 90}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="white"/>'
    ]
    low = min(p["reward"] for p in points)
    high = max(p["reward"] for p in points)
    for column, (field, title) in enumerate(AXES):
        parts += _panel(points, field, title, LEFT + column * (WIDTH + LEFT + GAP), low, high)
    for row, (side, colour) in enumerate(COLOURS.items()):
        parts.append(f'<text x="{LEFT + 90 * row}" y="20" fill="{colour}">{side}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _panel(points: Sequence[dict[str, Any]], field: str, title: str, left: int, low: float, high: float) -> list[str]:
    longest = max(p[field] for p in points)
    bottom = TOP + HEIGHT
    parts = [
        f'<path d="M{left} {TOP}V{bottom}H{left + WIDTH}" fill="none" stroke="#555"/>',
        f'<text x="{left + WIDTH / 2}" y="{bottom + 34}" text-anchor="middle">{title}</text>',
        f'<text x="{left + WIDTH}" y="{bottom + 16}" text-anchor="end">{longest:,.0f}</text>',
        f'<text x="{left}" y="{bottom + 16}" text-anchor="middle">0</text>',
        f'<text x="{left - 6}" y="{TOP + 10}" text-anchor="end">{high:.2f}</text>',
        f'<text x="{left - 6}" y="{bottom}" text-anchor="end">{low:.2f}</text>',
    ]
    for side, colour in COLOURS.items():
        for seed in sorted({p["seed"] for p in points if p["side"] == side}):
            line = [p for p in points if p["side"] == side and p["seed"] == seed]
            line.sort(key=lambda p: p["step"])
            xs = [left + WIDTH * p[field] / longest for p in line]
            ys = [bottom - HEIGHT * (p["reward"] - low) / (high - low or 1) for p in line]
            places = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
            parts.append(f'<polyline points="{places}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
    return parts
