"""Small models fitted with numpy: least squares, and logistic regression by Newton's method with a slight ridge."""

from __future__ import annotations

from collections.abc import Sequence

RIDGE = 1e-3
"""Of the logistic regression, on all weights; keeps separable data finite."""

STEPS = 25
DIGITS = 6

Matrix = Sequence[Sequence[float]]


def least_squares(rows: Matrix, values: Sequence[float]) -> list[float]:
    """Weights that fit ``rows`` (n x p, with a column of ones) to ``values`` (n)."""
    import numpy as np

    found = np.linalg.lstsq(np.asarray(rows, float), np.asarray(values, float), rcond=None)[0]
    return [round(float(one), DIGITS) for one in found]


def logistic(rows: Matrix, outcomes: Sequence[float]) -> list[float]:
    """Weights of the probability that an outcome is 1; ``rows`` as above, outcomes 0 or 1."""
    import numpy as np

    x, y = np.asarray(rows, float), np.asarray(outcomes, float)
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-np.clip(x @ weights, -30, 30)))
        slope = x.T @ (y - p) - RIDGE * weights
        curve = (x * (p * (1 - p))[:, None]).T @ x + RIDGE * np.eye(x.shape[1])
        step = np.linalg.solve(curve, slope)
        weights += step
        if float(np.abs(step).max()) < 1e-9:
            break
    return [round(float(one), DIGITS) for one in weights]
