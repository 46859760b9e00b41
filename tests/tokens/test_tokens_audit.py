from __future__ import annotations

import pytest

from journeyman.errors import InputError
from journeyman.tokens import Context, Tokenizer, retokenised
from journeyman.tokens.audit import reencoded


def context_of(*turns: list[int]) -> Context:
    context = Context()
    context.append_prompt([0])
    for ids in turns:
        context.append_sampled(ids, [-1.0] * len(ids), version=0)
        context.append_observation([3])
    return context


def test_the_sample_0_1_3_would_have_become_2_3(four_pieces: Tokenizer) -> None:
    assert four_pieces.decode([0, 1, 3]) == "<search>" == four_pieces.decode([2, 3])
    assert reencoded(four_pieces, [0, 1, 3]) == [2, 3]
    assert reencoded(four_pieces, [2, 3]) == [2, 3]


def test_the_context_keeps_what_was_sampled_and_the_audit_counts_what_a_text_stack_would_have_lost(
    four_pieces: Tokenizer,
) -> None:
    contexts = [context_of([2, 3], [0, 1, 3]), context_of([2, 3])]
    report = retokenised(contexts, four_pieces)
    assert contexts[0].ids == [0, 2, 3, 3, 0, 1, 3, 3]
    assert (report.contexts, report.turns, report.tokens) == (2, 3, 7)
    (changed,) = report.changed
    assert (changed.context, changed.turn, changed.sampled, changed.retokenised) == (0, 2, (0, 1, 3), (2, 3))
    assert report.changed_share == 1 / 3


def test_special_ids_survive_and_cut_the_text_that_is_encoded_anew(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode_marked('<tool_call>{"name":"calc"}</tool_call><|im_end|>')
    assert reencoded(tokenizer, ids) == ids
    split = [*tokenizer.encode("Ac"), *tokenizer.encode("me"), tokenizer.special("<|im_end|>")]
    assert reencoded(tokenizer, split) == [*tokenizer.encode("Acme"), tokenizer.special("<|im_end|>")]


def test_a_clean_audit_reports_no_change(tokenizer: Tokenizer) -> None:
    report = retokenised([context_of(tokenizer.encode("Acme"))], tokenizer)
    assert report.changed == ()
    assert report.changed_share == 0.0
    assert retokenised([], tokenizer).changed_share == 0.0


def test_the_multi_turn_forms_of_the_sample_are_counted_where_they_stand(four_pieces: Tokenizer) -> None:
    tail, merged, twice = context_of([0, 1, 3], [2, 3]), context_of([2, 3], [0, 1, 3]), context_of([0, 1, 3], [0, 1, 3])
    report = retokenised([tail, merged, twice], four_pieces)
    assert [(c.context, c.turn, c.at) for c in report.changed] == [(0, 1, 0), (1, 2, 0), (2, 1, 0), (2, 2, 0)]
    assert report.would_fork == 2, "a change in the last turn breaks nothing after it"
    assert report.fork_share == 2 / 3
    assert [context.ids for context in (tail, merged, twice)] == [
        [0, 0, 1, 3, 3, 2, 3, 3],
        [0, 2, 3, 3, 0, 1, 3, 3],
        [0, 0, 1, 3, 3, 0, 1, 3, 3],
    ]


def test_a_seam_that_would_merge_is_told_from_a_turn_that_would_change(four_pieces: Tokenizer) -> None:
    context = Context()
    context.append_prompt([3, 0])
    context.append_sampled([1, 3], [-1.0, -1.0], version=0)
    report = retokenised([context], four_pieces)
    assert four_pieces.encode(four_pieces.decode([3, 0, 1, 3])) == [3, 2, 3]
    assert (report.changed, report.seams, report.would_fork) == ((), 1, 0)
    assert context.ids == [3, 0, 1, 3]


def test_contexts_of_another_vocabulary_are_refused(four_pieces: Tokenizer) -> None:
    with pytest.raises(InputError, match="id 900 lies beyond"):
        retokenised([context_of([900])], four_pieces)


def test_forced_ends_forks_and_the_growth_of_prompts_are_counted(four_pieces: Tokenizer) -> None:
    context = Context()
    context.append_prompt([3, 3])
    context.append_sampled([1, 3], [-1.0, -1.0], version=0)
    context.append_forced([3])
    context.append_observation([3])
    context.append_sampled([1], [-1.0], version=0)
    context.open_segment(2, "compaction")
    context.append_prompt([3])
    context.append_sampled([1], [-1.0], version=0)
    report = retokenised([context], four_pieces)
    assert (report.forced_turns, report.forced_tokens, report.forks) == (1, 1, 1)
    growth = report.growth
    assert (growth.calls, growth.stored, growth.sent, growth.longest) == (3, 9, 2 + 6 + 3, 6)
    assert growth.repeated == 11 / 9
    stored = retokenised([context.arrays()], four_pieces)
    assert (stored.forks, stored.growth.sent) == (1, 2 + 6 + 1), "what a stored segment shares is not known"
