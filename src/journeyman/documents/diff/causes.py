"""Why a value changed: the differences that it reads, directly or through other values that changed."""

from __future__ import annotations

from collections.abc import Iterable

from ..xlsx.address import Area
from ..xlsx.formula import functions, names
from ..xlsx.graph import DYNAMIC, Graph, Place, Places


class Causes:
    """The differences of two workbooks as places on both sides; asked for the roots of one downstream value.

    State: per side a set of changed places, and which address each stands for.
    """

    def __init__(self, first: Graph, second: Graph) -> None:
        self._graphs = (first, second)
        self._roots: tuple[dict[Place, str], dict[Place, str]] = ({}, {})
        self._areas: tuple[list[tuple[Area, str]], list[tuple[Area, str]]] = ([], [])
        self._names: dict[str, str] = {}
        self._downstream: list[tuple[str, tuple[Place, str], tuple[Place, str]]] = []

    def add_cell(self, address: str, first: Place | None, second: Place | None) -> None:
        """A changed value or formula; sheets in lower case."""
        for side, place in enumerate((first, second)):
            if place is not None:
                self._roots[side][place] = address

    def add_area(self, address: str, side: int, area: Area) -> None:
        """Cells that exist on one side only; the sheet in lower case."""
        self._areas[side].append((area, address))

    def add_name(self, name: str, address: str) -> None:
        """A defined name whose meaning changed."""
        self._names[name.upper()] = address

    def add_downstream(self, address: str, first: tuple[Place, str], second: tuple[Place, str]) -> None:
        """A formula whose value changed: its place and formula on both sides."""
        self._downstream.append((address, first, second))

    def explain(self) -> dict[str, tuple[str, ...]]:
        """Address of each downstream value -> addresses of its roots, in the order of the document."""
        changed = tuple(
            Places([*self._roots[side], *((first, second)[side][0] for _, first, second in self._downstream)])
            for side in (0, 1)
        )
        address_of = [dict(self._roots[side]) for side in (0, 1)]
        for address, first, second in self._downstream:
            address_of[0].setdefault(first[0], address)
            address_of[1].setdefault(second[0], address)
        roots = {*self._roots[0].values(), *self._roots[1].values(), *self._names.values()}
        roots |= {address for side in self._areas for _, address in side}
        direct = {
            address: self._direct(address, sides, changed, address_of, roots) for address, *sides in self._downstream
        }
        return {address: tuple(_sorted(_closure(address, direct, roots))) for address in direct}

    def _direct(
        self,
        address: str,
        sides: list[tuple[Place, str]],
        changed: tuple[Places, ...],
        address_of: list[dict[Place, str]],
        roots: set[str],
    ) -> set[str]:
        found: set[str] = set()
        for side, (place, formula) in enumerate(sides):
            if functions(formula) & DYNAMIC:
                found |= roots
            found |= {self._names[name] for name in names(formula) if name in self._names}
            for area in self._graphs[side].precedents(formula, place[0]):
                found |= {address_of[side][one] for one in changed[side].within(area)}
                found |= {root for block, root in self._areas[side] if _touch(area, block)}
        return found - {address}


def _closure(address: str, direct: dict[str, set[str]], roots: set[str]) -> set[str]:
    seen, stack, found = {address}, [address], set()
    while stack:
        for one in direct.get(stack.pop(), ()):
            if one in roots:
                found.add(one)
            elif one not in seen:
                seen.add(one)
                stack.append(one)
    return found


def _sorted(addresses: Iterable[str]) -> list[str]:
    return sorted(addresses)


def _touch(one: Area, other: Area) -> bool:
    return (
        one.sheet == other.sheet
        and one.top <= other.bottom
        and other.top <= one.bottom
        and one.left <= other.right
        and other.left <= one.right
    )
