"""Laws of the merge, on generated trees: what a later layer says holds, what it leaves out stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from journeyman.config.layers import Leaf, Source, Tree
from journeyman.config.merge import leaves, merge

LAYER = Source("flag", "--x")
KEYS = st.sampled_from(["a", "b", "c", "type"])
LEAVES = st.builds(Leaf, st.integers(), st.just(LAYER))
TREES = st.recursive(
    st.dictionaries(KEYS, LEAVES, max_size=3),
    lambda trees: st.dictionaries(KEYS, st.one_of(LEAVES, trees), max_size=3),
    max_leaves=12,
)

# Trees that agree on which keys are tables: a value between two tables under one key cuts the upper from the lower.
ALIKE = st.recursive(
    st.dictionaries(st.sampled_from(["a", "b"]), LEAVES, max_size=2),
    lambda trees: st.builds(
        lambda values, tables: {**values, **tables},
        st.dictionaries(st.sampled_from(["a", "b"]), LEAVES, max_size=2),
        st.dictionaries(st.sampled_from(["t", "u"]), trees, max_size=2),
    ),
    max_leaves=8,
)


def laid(lower: Tree, upper: Tree) -> Tree:
    return merge(lower, upper, None, (), [])


@given(TREES, TREES)
def test_every_leaf_of_the_upper_layer_is_in_the_result(lower, upper):
    result = dict(leaves(laid(lower, upper)))
    assert dict(leaves(upper)).items() <= result.items()


@given(TREES, TREES)
def test_a_leaf_of_the_lower_layer_stays_unless_the_upper_one_says_something_at_above_or_below_it(lower, upper):
    said = {path for path, _ in leaves(upper)}
    result = dict(leaves(laid(lower, upper)))
    for path, leaf in leaves(lower):
        overlaps = any(path[: len(other)] == other or other[: len(path)] == path for other in said)
        if not overlaps and not _is_table(upper, path):
            assert result[path] == leaf


@given(ALIKE, ALIKE, ALIKE)
def test_the_order_of_grouping_does_not_matter(first, second, third):
    assert laid(laid(first, second), third) == laid(first, laid(second, third))


@given(TREES)
def test_an_empty_layer_changes_nothing_and_a_layer_laid_twice_counts_once(tree):
    assert laid(tree, {}) == tree
    assert laid({}, tree) == tree
    assert laid(tree, tree) == tree


@given(TREES, TREES)
def test_neither_layer_is_changed(lower, upper):
    before = (repr(lower), repr(upper))
    laid(lower, upper)
    assert (repr(lower), repr(upper)) == before


def _is_table(tree: Tree, path: tuple[str, ...]) -> bool:
    node: object = tree
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return isinstance(node, dict)
