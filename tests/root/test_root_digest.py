"""Equal content has one digest, whatever the order it was given in."""

from __future__ import annotations

import hashlib

import pytest

from journeyman.digest import canonical_json, directory_sha256, sha256, sha256_file, sha256_json, tree_sha256


def test_canonical_json_is_sorted_compact_utf8():
    assert canonical_json({"b": [1, 2.5, None], "a": "é"}) == '{"a":"é","b":[1,2.5,null]}'.encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_without_json_are_refused(value):
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": value})


def test_key_order_does_not_change_a_digest_and_content_does():
    assert sha256_json({"a": 1, "b": 2}) == sha256_json({"b": 2, "a": 1})
    assert sha256_json({"a": 1}) != sha256_json({"a": 2})
    assert tree_sha256({"x": b"1", "y": b"2"}) == tree_sha256({"y": b"2", "x": b"1"})
    assert tree_sha256({"x": b"1", "y": b"2"}) != tree_sha256({"x": b"2", "y": b"1"})


def test_a_file_has_the_digest_of_its_bytes(tmp_path):
    data = b"journeyman" * 100_000
    (tmp_path / "big").write_bytes(data)
    assert sha256_file(tmp_path / "big") == sha256(data) == hashlib.sha256(data).hexdigest()


def test_a_directory_digest_follows_names_and_bytes_but_not_times(tmp_path):
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "a").write_text("1")
    assert directory_sha256(tmp_path / "one") == directory_sha256(tmp_path / "two")
    (tmp_path / "two" / "sub" / "a").rename(tmp_path / "two" / "sub" / "b")
    assert directory_sha256(tmp_path / "one") != directory_sha256(tmp_path / "two")
