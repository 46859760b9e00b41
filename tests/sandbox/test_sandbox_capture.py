"""The cap on output."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from journeyman.sandbox.capture import Captured, utf8_cut


@given(st.text(), st.integers(0, 40))
def test_a_cut_text_is_valid_and_as_long_as_the_limit_allows(text: str, limit: int) -> None:
    data = text.encode(errors="surrogatepass") if text.isprintable() else text.encode(errors="replace")
    cut = utf8_cut(data, limit)
    cut.decode()
    assert data.startswith(cut)
    assert len(cut) <= limit
    assert len(cut) == len(data) or len(cut) > limit - 4


@given(st.binary(), st.integers(0, 40))
def test_any_bytes_are_cut_within_the_limit(data: bytes, limit: int) -> None:
    cut = utf8_cut(data, limit)
    assert data.startswith(cut)
    assert len(cut) <= limit


@given(st.lists(st.binary(max_size=50), max_size=8), st.integers(0, 60))
def test_kept_and_omitted_bytes_add_up_however_the_data_arrives(parts: list[bytes], limit: int) -> None:
    captured = Captured(limit)
    for part in parts:
        captured.add(part)
    for text in (True, False):
        kept, omitted = captured.result(text=text)
        assert len(kept) + omitted == sum(map(len, parts))
        assert b"".join(parts).startswith(kept)
    assert captured.result(text=False)[0] == b"".join(parts)[:limit]
