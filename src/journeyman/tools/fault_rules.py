"""The file of faults: Archipelago's ``injected_errors.json``, read strictly.

    {"seed": 7, "error_rules": [{"error_type": "rate_limit", "tool": "mail_*", "probability": 0.2, "message": "...",
                                 "paths": ["*.pdf"], "max_occurrences": 3, "metadata": {"retry_after_s": 4}}]}

Types, globs and order are Archipelago's; ``dropped_connection``, ``slow`` and the keys of ``metadata`` are ours. There
a broken file only logs; here it is an ``InputError`` that names file, field and nearest, since a world whose faults do
not happen is another world. A world keeps one file per server, below ``<apps data>/<server>/.config/``.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from journeyman.errors import InputError, nearest

ERROR_TYPES: dict[str, tuple[str, ...]] = {
    "timeout": ("after_side_effect",),
    "rate_limit": ("retry_after_s", "passes"),
    "permission_denied": (),
    "server_error": ("after_side_effect",),
    "malformed_response": ("keep_share",),
    "dropped_connection": ("after_side_effect",),
    "slow": ("distribution", "delay_s", "mean_s", "median_s", "sigma", "low_s", "high_s", "max_s"),
}
"""Error type -> keys of ``metadata`` that it reads."""

DISTRIBUTIONS = ("constant", "uniform", "exponential", "lognormal")
"""Of the delay of ``slow``."""

CONFIG_FILE = Path(".config") / "injected_errors.json"
"""Below the directory of a server's state. No agent may see it: it says what is going to fail."""

_PLAN_KEYS = ("seed", "error_rules")
_RULE_KEYS = ("error_type", "tool", "probability", "message", "paths", "max_occurrences", "metadata")


@dataclass(frozen=True)
class FaultRule:
    """One rule.

    Attributes:
        error_type: key of ``ERROR_TYPES``.
        tool: glob over tool names, case counts.
        probability: 0..1, drawn for each call that the rule decides.
        message: text for the policy, None for the type's own.
        paths: globs; empty matches every call, else one must match a string anywhere in the arguments.
        max_occurrences: after so many the rule is skipped; None for no end.
        metadata: what the type reads, see ``ERROR_TYPES``.
        where: place in the file.
    """

    error_type: str
    tool: str = "*"
    probability: float = 1.0
    message: str | None = None
    paths: tuple[str, ...] = ()
    max_occurrences: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    where: str = "faults"

    def matches(self, names: Sequence[str], arguments: Mapping[str, Any]) -> bool:
        """Whether the rule may decide a call of a tool known by these names."""
        if not any(fnmatchcase(name, self.tool) for name in names):
            return False
        return not self.paths or any(fnmatchcase(text, glob) for text in _strings(arguments) for glob in self.paths)

    def number(self, key: str, default: float) -> float:
        """A number of ``metadata``."""
        return float(self.metadata.get(key, default))

    def is_after_side_effect(self, numbers: random.Random) -> bool:
        """Whether the real call happens before it fails: ``after_side_effect`` is a bool or a probability."""
        return numbers.random() < float(self.metadata.get("after_side_effect", False))


@dataclass(frozen=True)
class FaultPlan:
    """The rules of one file.

    Attributes:
        rules: in the order of the file.
        seed: of its draws.
        server: the plan is for the tools of this server only, whose globs name them without the server; None for all.
        where: the file.
    """

    rules: tuple[FaultRule, ...]
    seed: int = 0
    server: str | None = None
    where: str = "faults"

    def tool_names(self, name: str) -> tuple[str, ...]:
        """The names by which a glob of this plan may match a tool; none when it is another server's."""
        if self.server is None:
            return (name,)
        prefix = f"{self.server}_"
        return (name, name.removeprefix(prefix)) if name.startswith(prefix) else ()

    def check(self, tools: Sequence[str]) -> None:
        """Raise InputError unless every rule matches one of these tools: else it is a misspelling."""
        names = [known for tool in tools for known in self.tool_names(tool)]
        if not names and self.rules:
            raise InputError(
                self.where,
                f"there is no tool of a server {self.server!r}",
                allowed=", ".join(sorted({tool.partition("_")[0] for tool in tools})),
            )
        for rule in self.rules:
            if not any(fnmatchcase(name, rule.tool) for name in names):
                raise InputError(
                    f"{rule.where}.tool", f"{rule.tool!r} matches no tool", hint=_did_you_mean(rule.tool, names)
                )


def load_plan(path: Path, *, server: str | None = None) -> FaultPlan:
    """Read one file.

    Raises:
        InputError: it cannot be read, is no JSON or says something that the format does not know.
    """
    try:
        document = json.loads(path.read_bytes())
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise InputError(str(path), f"is no JSON: {error}") from error
    return plan_of(document, where=str(path), server=server)


def load_world_plans(apps_data: Path) -> tuple[FaultPlan, ...]:
    """The plan of each server below a world's state that has one, by server name. Raises as ``load_plan``."""
    found = sorted(path for path in apps_data.glob(f"*/{CONFIG_FILE.as_posix()}") if path.is_file())
    return tuple(load_plan(path, server=path.parents[1].name) for path in found)


def plan_of(document: Any, *, where: str = "faults", server: str | None = None) -> FaultPlan:
    """Check a parsed file. Raises InputError with the field that is wrong."""
    _require(isinstance(document, Mapping), where, f"is {_kind(document)}", "an object with seed and error_rules")
    _known_keys(document, _PLAN_KEYS, where)
    seed = document.get("seed", 0)
    _require(_is_int(seed) or seed is None, f"{where}:seed", f"is {seed!r}", "a whole number")
    rules = document.get("error_rules", [])
    _require(isinstance(rules, list), f"{where}:error_rules", f"is {_kind(rules)}", "a list of rules")
    read = tuple(_rule_of(rule, f"{where}:error_rules[{index}]") for index, rule in enumerate(rules))
    return FaultPlan(read, seed or 0, server, where)


def _rule_of(rule: Any, where: str) -> FaultRule:
    _require(isinstance(rule, Mapping), where, f"is {_kind(rule)}", "an object")
    _known_keys(rule, _RULE_KEYS, where)
    kind = rule.get("error_type")
    if kind not in ERROR_TYPES:
        allowed = ", ".join(ERROR_TYPES)
        raise InputError(f"{where}.error_type", f"is {kind!r}", allowed=allowed, hint=_did_you_mean(kind, ERROR_TYPES))
    tool, message, paths = rule.get("tool", "*"), rule.get("message"), rule.get("paths") or []
    _require(isinstance(tool, str) and tool != "", f"{where}.tool", f"is {tool!r}", "a glob over tool names")
    probability, most = rule.get("probability", 1.0), rule.get("max_occurrences")
    is_share = _is_number(probability) and 0 <= probability <= 1
    _require(is_share, f"{where}.probability", f"is {probability!r}", "a number from 0 to 1")
    _require(message is None or isinstance(message, str), f"{where}.message", f"is {_kind(message)}", "a text")
    are_globs = isinstance(paths, list) and all(isinstance(path, str) for path in paths)
    _require(are_globs, f"{where}.paths", f"is {paths!r}", "a list of globs")
    is_count = most is None or (_is_int(most) and most >= 0)
    _require(is_count, f"{where}.max_occurrences", f"is {most!r}", "a whole number from 0, or null")
    metadata = rule.get("metadata") or {}
    _require(isinstance(metadata, Mapping), f"{where}.metadata", f"is {_kind(metadata)}", "an object")
    _check_metadata(kind, metadata, f"{where}.metadata")
    return FaultRule(kind, tool, float(probability), message, tuple(paths), most, dict(metadata), where)


def _check_metadata(kind: str, metadata: Mapping[str, Any], where: str) -> None:
    """Keys that the type reads, each with a value it can use."""
    _known_keys(metadata, ERROR_TYPES[kind], where)
    for key, value in metadata.items():
        place, got = f"{where}.{key}", f"is {value!r}"
        if key == "distribution":
            if value not in DISTRIBUTIONS:
                raise InputError(place, got, allowed=", ".join(DISTRIBUTIONS), hint=_did_you_mean(value, DISTRIBUTIONS))
        elif key == "after_side_effect":
            _require(isinstance(value, bool) or _is_share(value), place, got, "true, false or a probability")
        elif key == "keep_share":
            _require(_is_share(value), place, got, "a number from 0 to 1")
        elif key == "passes":
            _require(_is_int(value) and value > 0, place, got, "a whole number above 0")
        elif key in ("mean_s", "median_s"):
            _require(_is_number(value) and value > 0, place, got, "seconds above 0")
        else:
            _require(_is_number(value) and value >= 0, place, got, "a number from 0")


def _strings(value: Any) -> Iterator[str]:
    """Every string in the arguments of a call, however deep; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _known_keys(given: Mapping[str, Any], known: Sequence[str], where: str) -> None:
    for key in given:
        if key not in known:
            allowed = ", ".join(known) or "no key at all"
            raise InputError(f"{where}.{key}", "is no known field", allowed=allowed, hint=_did_you_mean(key, known))


def _require(holds: bool, where: str, problem: str, allowed: str) -> None:
    if not holds:
        raise InputError(where, problem, allowed=allowed)


def _did_you_mean(given: Any, known: Sequence[str] | Mapping[str, Any]) -> str | None:
    found = nearest(given, known) if isinstance(given, str) else None
    return f"did you mean {found}?" if found else None


def _kind(value: Any) -> str:
    return "missing" if value is None else f"of type {type(value).__name__}"


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value == value and abs(value) < 1e12


def _is_share(value: Any) -> bool:
    return _is_number(value) and 0 <= value <= 1
