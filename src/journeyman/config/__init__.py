"""Recipes: layers of TOML, environment and flags, merged and validated by a pydantic model, with every error at once.

Promises: ``load`` returns a valid frozen model together with where each value came from, or raises one ``ConfigError``
that lists every problem; nothing is started before. Later layers win: model defaults, files in order (``@ base.toml
@ overlay.toml``), environment (``JOURNEYMAN_A__B``), flags (``--a.b value``). Tables merge, lists are replaced.

Refuses to know what a recipe is for: it walks whatever model it is given. A package, not one module, because its parts
are different nouns: ``lines`` (where a key stands in a file), ``layers`` (what the user wrote), ``slots`` (what a field
may hold), ``merge`` (one layer over another), ``settle`` (text to values), ``problems`` (what is wrong, in words).
The grammar is described in docs/config.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from journeyman.config.layers import Leaf, Tree, default_tree, env_tree, read_tokens
from journeyman.config.merge import merge
from journeyman.config.problems import rows_of
from journeyman.config.settle import settle
from journeyman.config.slots import Slot
from journeyman.digest import sha256_json
from journeyman.errors import ConfigError

__all__ = ["Knobs", "Resolved", "load"]

M = TypeVar("M", bound=BaseModel)


class Knobs(BaseModel):
    """Base of every section of a recipe: frozen, unknown keys refused, no NaN or infinity, defaults checked too."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_default=True)


@dataclass(frozen=True)
class Resolved(Generic[M]):
    """A merged and validated recipe.

    Attributes:
        model: the validated model.
        sources: for every leaf, by dotted path, where its value came from: ``default``, ``file.toml:14``,
            ``JOURNEYMAN_A__B`` or ``--a.b``.
        sha256: digest of the canonical JSON of the model: equal recipes have one name, however they were written.
        notices: what the user should know but need not mend, e.g. keys dropped because a union changed its ``type``.
    """

    model: M
    sources: Mapping[str, str]
    sha256: str
    notices: tuple[str, ...] = ()


def load(model_class: type[M], tokens: Sequence[str], env: Mapping[str, str]) -> Resolved[M]:
    """Merge all layers into ``model_class`` and validate the result.

    Args:
        model_class: the recipe; its sections should derive from ``Knobs`` so that unknown keys are refused.
        tokens: words of the command line after the verb: ``@ file.toml``, ``--a.b value``, ``--a.b=value``, ``--flag``,
            ``--no-flag``.
        env: environment; only names that start with ``JOURNEYMAN_`` are read.

    Raises:
        ConfigError: every problem found, each with dotted path, source, value got, what is allowed, nearest match.
    """
    root = Slot.of(model_class)
    given = read_tokens(tokens, root)
    if given.unreadable:  # a file that does not parse would make every key it holds look missing
        raise ConfigError(given.problems)
    notices: list[str] = []
    tree: Tree = default_tree(model_class)
    for layer in (*given.files, env_tree(env), given.flags):
        tree = merge(tree, layer, root, (), notices)
    problems = list(given.problems)
    data = settle(tree, root, (), problems)
    settled = {problem.path for problem in problems}
    try:
        model = model_class.model_validate(data)
    except ValidationError as error:
        problems += [row for row in rows_of(error, root, data, tree) if row.path not in settled]
    if problems:
        raise ConfigError(problems)
    sources = {".".join(path): source for path, source in _sources(model.model_dump(), tree, ())}
    return Resolved(model, sources, sha256_json(model.model_dump(mode="json")), tuple(notices))


def _sources(values: Mapping[str, Any], tree: Tree, path: tuple[str, ...]) -> list[tuple[tuple[str, ...], str]]:
    """Leaves of the validated model with their source; what no layer set is a default of the model."""
    found: list[tuple[tuple[str, ...], str]] = []
    for key, value in values.items():
        below = tree.get(key)
        if isinstance(value, dict) and value:
            found += _sources(value, below if isinstance(below, dict) else {}, (*path, str(key)))
        else:
            found.append(((*path, str(key)), below.source.text if isinstance(below, Leaf) else "default"))
    return found
