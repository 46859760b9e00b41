"""What tokens cost: a table of the user's own, because prices change and nobody here can know them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from journeyman.digest import sha256
from journeyman.engines.openai.reply import TokenUsage
from journeyman.errors import InputError, nearest


@dataclass(frozen=True)
class Price:
    """Dollars per million tokens of one model.

    Attributes:
        input: uncached input.
        output: output, reasoning included.
        cache_read, cache_write: those parts of the input; None: as ``input``.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None

    def dollars(self, usage: TokenUsage) -> float:
        """Cost of a call; cached tokens are counted once, at their own price."""
        read = self.input if self.cache_read is None else self.cache_read
        written = self.input if self.cache_write is None else self.cache_write
        uncached = usage.input - usage.cache_read - usage.cache_write
        return (
            uncached * self.input + usage.cache_read * read + usage.cache_write * written + usage.output * self.output
        ) / 1e6


@dataclass(frozen=True)
class PriceTable:
    """Prices by model name.

    Attributes:
        prices: by the name a request asks for.
        name, sha256: which table it was; part of every record that holds dollars.
    """

    prices: Mapping[str, Price] = field(default_factory=dict)
    name: str = "none"
    sha256: str = ""

    def dollars(self, model: str, usage: TokenUsage | None) -> float | None:
        """Cost of a call; None when the price or the usage is unknown."""
        price = self.prices.get(model)
        return None if price is None or usage is None else price.dollars(usage)


def read_prices(path: Path) -> PriceTable:
    """A TOML file with a table ``[models."NAME"]`` per model: ``input``, ``output`` and the two caches.

    All in dollars per million tokens.

    Raises:
        InputError: it cannot be read, or a price is no number >= 0.
    """
    try:
        data = path.read_bytes()
        document = tomllib.loads(data.decode())
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"cannot be read: {error}") from error
    models = document.get("models")
    if not isinstance(models, dict):
        raise InputError(f"{path}:models", "is missing", allowed='[models."NAME"] with input and output')
    return PriceTable({name: _price(path, name, row) for name, row in models.items()}, path.name, sha256(data))


def _price(path: Path, name: str, row: Any) -> Price:
    known = [item.name for item in fields(Price)]
    if not isinstance(row, dict):
        raise InputError(f"{path}:models.{name}", "is no table", allowed=", ".join(known))
    for key, value in row.items():
        where = f"{path}:models.{name}.{key}"
        if key not in known:
            guess = nearest(key, known)
            raise InputError(where, "is no price", allowed=", ".join(known), hint=guess and f"did you mean {guess}?")
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
            raise InputError(where, f"is {value!r}", allowed="dollars per million tokens, >= 0")
    if missing := {"input", "output"} - row.keys():
        raise InputError(f"{path}:models.{name}", f"lacks {', '.join(sorted(missing))}")
    return Price(**row)
