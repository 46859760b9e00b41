"""What a field of a recipe may hold, read off its annotation: the one place that knows typing and pydantic fields."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel

_WORDS: dict[Any, str] = {int: "an integer", float: "a number", bool: "true or false", str: "text", Path: "a path"}
_LISTS = (list, tuple, set, frozenset)


@dataclass(frozen=True)
class Slot:
    """The alternatives of one place in a recipe.

    Attributes:
        options: the alternatives, ``None`` and ``Annotated`` stripped.
        constraints: metadata such as ``annotated_types.Gt``.
        optional: whether ``None`` is allowed.
    """

    options: tuple[Any, ...]
    constraints: tuple[Any, ...] = ()
    optional: bool = False

    @classmethod
    def of(cls, annotation: Any, constraints: tuple[Any, ...] = ()) -> Slot:
        """The slot of a type annotation, with the metadata pydantic keeps beside it."""
        if get_origin(annotation) is Annotated:
            inner, *metadata = get_args(annotation)
            return cls.of(inner, (*constraints, *metadata))
        if get_origin(annotation) in (Union, types.UnionType):
            parts = [cls.of(part, constraints) for part in get_args(annotation) if part is not types.NoneType]
            return cls(
                tuple(option for part in parts for option in part.options),
                tuple(dict.fromkeys(c for part in parts for c in part.constraints)) if parts else constraints,
                types.NoneType in get_args(annotation) or any(part.optional for part in parts),
            )
        return cls((annotation,), constraints)

    @property
    def models(self) -> list[type[BaseModel]]:
        return [option for option in self.options if isinstance(option, type) and issubclass(option, BaseModel)]

    @property
    def tags(self) -> dict[str, type[BaseModel]]:
        """Members of a union by their ``type`` key; empty when this is no such union."""
        tagged: dict[str, type[BaseModel]] = {}
        for model in self.models:
            field = model.model_fields.get("type")
            if field is None or get_origin(field.annotation) is not Literal:
                return {}
            tagged |= dict.fromkeys(get_args(field.annotation), model)
        return tagged

    @property
    def choices(self) -> list[Any]:
        """Values of ``Literal`` and ``Enum`` alternatives."""
        found: list[Any] = []
        for option in self.options:
            if get_origin(option) is Literal:
                found += get_args(option)
            elif isinstance(option, type) and issubclass(option, enum.Enum):
                found += [member.value for member in option]
        return found

    @property
    def item(self) -> Slot | None:
        """What a list here holds, or None when this is no list."""
        for option in self.options:
            if get_origin(option) in _LISTS:
                return Slot.of(get_args(option)[0])
            if option in _LISTS:
                return Slot.of(Any)
        return None

    @property
    def entry(self) -> Slot | None:
        """What a free table (``dict[str, X]``) holds under each key, or None when keys are not free."""
        for option in self.options:
            if get_origin(option) is dict:
                return Slot.of(get_args(option)[1])
            if option is dict:
                return Slot.of(Any)
        return None

    def holds(self, kind: type) -> bool:
        return kind in self.options

    def model(self, value: Mapping[str, Any]) -> type[BaseModel] | None:
        """The model that ``value`` would be read as: the only one, or the union member its ``type`` names."""
        models = self.models
        if len(models) == 1:
            return models[0]
        tag = value.get("type")
        return self.tags.get(tag) if isinstance(tag, str) else None

    def child(self, key: str, value: Mapping[str, Any]) -> Slot | None:
        """The slot under ``key``, given the table that stands here; None for a key that the model lacks."""
        model = self.model(value)
        if model is not None:
            field = model.model_fields.get(key)
            return None if field is None else Slot.of(field.annotation, tuple(field.metadata))
        return self.entry

    def keys(self) -> set[str]:
        """Every key that some alternative has."""
        return {name for model in self.models for name in model.model_fields}

    def any_child(self, key: str) -> Slot | None:
        """The slot under ``key`` in whichever alternative has it: for words read before the union's type is known."""
        for model in self.models:
            if key in model.model_fields:
                field = model.model_fields[key]
                return Slot.of(field.annotation, tuple(field.metadata))
        return self.entry

    def describe(self) -> str:
        """What is expected here, in words: ``a number > 0``, ``a list of text``, ``one of: a, b``."""
        words = [self._option_words(option) for option in self.options]
        text = " or ".join(dict.fromkeys(word for word in words if word))
        limits = " and ".join(filter(None, (_limit_words(c, countable=self.holds(str)) for c in self.constraints)))
        return (f"{text} {limits}" if limits else text) + (" or none" if self.optional and text else "")

    def _option_words(self, option: Any) -> str:
        if option in _WORDS:
            return _WORDS[option]
        if get_origin(option) is Literal or (isinstance(option, type) and issubclass(option, enum.Enum)):
            return "one of: " + ", ".join(str(choice) for choice in Slot((option,)).choices)
        if get_origin(option) in _LISTS or option in _LISTS:
            item = Slot((option,)).item
            held = item.describe() if item else ""
            return f"a list of ({held})" if " " in held else "a list" + (f" of {held}" if held else "")
        if get_origin(option) is dict or option is dict or Slot((option,)).models:
            return "a table"
        return ""


def _limit_words(constraint: Any, *, countable: bool) -> str:
    for kind, sign in (("gt", ">"), ("ge", ">="), ("lt", "<"), ("le", "<=")):
        if isinstance(constraint, getattr(annotated_types, kind.capitalize())):
            return f"{sign} {getattr(constraint, kind)}"
    unit = "characters" if countable else "entries"
    if isinstance(constraint, annotated_types.MinLen):
        return f"with at least {constraint.min_length} {unit}"
    if isinstance(constraint, annotated_types.MaxLen):
        return f"with at most {constraint.max_length} {unit}"
    pattern = getattr(constraint, "pattern", None)
    return f"matching {pattern}" if pattern else ""
