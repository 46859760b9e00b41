from __future__ import annotations

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
