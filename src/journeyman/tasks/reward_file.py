"""Reward files as a test script leaves them: ``reward.json`` wins over ``reward.txt``, and nothing is believed unread.

Stricter than Harbor 0.25 where Harbor lets a wrong grade through: a boolean and a value outside [0, 1] are errors
(harness.md 3.4).
"""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from journeyman.tasks.errors import RewardFileEmpty, RewardFileMissing, RewardInvalid
from journeyman.tasks.verdict import plain_text, valid_reward

MAX_REWARD_FILE_BYTES = 1_000_000
"""A reward or its details is a few lines; more is not read."""

_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


Bounds = tuple[float, float]
UNIT: Bounds = (0.0, 1.0)


def parse_reward_txt(data: bytes, bounds: Bounds = UNIT) -> float:
    """The one number of a ``reward.txt``, within ``bounds``. Raises RewardFileEmpty or RewardInvalid."""
    text = _text(data, "reward.txt")
    if not _NUMBER.fullmatch(text):
        raise RewardInvalid(f"reward.txt holds {plain_text(text, 80)!r}, not one finite number in {_words(bounds)}")
    return _within(float(text), bounds)


def parse_reward_json(data: bytes, bounds: Bounds = UNIT) -> float:
    """The reward of a ``reward.json``: its key ``reward``, or its only key. Raises as ``parse_rewards``."""
    rewards = parse_rewards(data, bounds)
    if "reward" not in rewards and len(rewards) > 1:
        raise RewardInvalid(f"reward.json has no key reward, but {', '.join(sorted(rewards))}")
    return rewards.get("reward", next(iter(rewards.values())))


def parse_rewards(data: bytes, bounds: Bounds = UNIT) -> dict[str, float]:
    """All rewards of a ``reward.json`` by name.

    All values must be valid rewards, so that a file with one impossible number is not half believed.

    Raises:
        RewardFileEmpty: no content.
        RewardInvalid: no JSON object, no such key, or a value that is not a finite number within ``bounds``.
    """
    text = _text(data, "reward.json")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RewardInvalid(f"reward.json is not JSON: {error}") from error
    if not isinstance(values, dict) or not values:
        raise RewardInvalid(f"reward.json holds {plain_text(text, 80)}, not an object of numbers")
    return {key: _within(value, bounds) for key, value in values.items()}


def read_reward(directory: Path, bounds: Bounds = UNIT) -> float:
    """The reward a finished verifier left in ``directory``, mapped from ``bounds`` onto [0, 1].

    Raises:
        RewardFileMissing, RewardFileEmpty, RewardInvalid: see there. A link in the place of a file counts as missing.
    """
    content = read_plain_file(directory / "reward.json")
    if content is not None:
        return scaled(parse_reward_json(content, bounds), bounds)
    content = read_plain_file(directory / "reward.txt")
    if content is None:
        raise RewardFileMissing("the verifier wrote neither reward.json nor reward.txt")
    return scaled(parse_reward_txt(content, bounds), bounds)


def read_rewards(directory: Path, bounds: Bounds = UNIT) -> dict[str, float]:
    """All rewards a finished verifier left, by name and as they stand in the file. Raises as ``read_reward``."""
    content = read_plain_file(directory / "reward.json")
    if content is not None:
        return parse_rewards(content, bounds)
    content = read_plain_file(directory / "reward.txt")
    if content is None:
        raise RewardFileMissing("the verifier wrote neither reward.json nor reward.txt")
    return {"reward": parse_reward_txt(content, bounds)}


def scaled(reward: float, bounds: Bounds) -> float:
    """``reward`` within ``bounds``, as a number in [0, 1]."""
    return reward if bounds == UNIT else (reward - bounds[0]) / (bounds[1] - bounds[0])


def _within(value: object, bounds: Bounds) -> float:
    if bounds == UNIT:
        return valid_reward(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not bounds[0] <= value <= bounds[1]:
        raise RewardInvalid(f"reward {plain_text(repr(value), 80)} is no number in {_words(bounds)}")
    return float(value)


def _words(bounds: Bounds) -> str:
    return f"[{bounds[0]:g}, {bounds[1]:g}]"


def read_details(directory: Path) -> dict[str, Any]:
    """``details.json`` beside the reward, or ``{}`` when it is absent or no JSON object: details are not a grade."""
    try:
        found = json.loads(read_plain_file(directory / "details.json") or b"{}")
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def read_plain_file(path: Path, max_bytes: int = MAX_REWARD_FILE_BYTES) -> bytes | None:
    """The first ``max_bytes + 1`` bytes of a regular file (more than allowed tells that it is too long), or None.

    Links are not followed; devices and pipes are not read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(max_bytes + 1)


def _text(data: bytes, name: str) -> str:
    if len(data) > MAX_REWARD_FILE_BYTES:
        raise RewardInvalid(f"{name} is longer than {MAX_REWARD_FILE_BYTES} bytes")
    try:
        text = data.decode("utf-8").strip()
    except UnicodeDecodeError as error:
        raise RewardInvalid(f"{name} is not UTF-8 text") from error
    if not text:
        raise RewardFileEmpty(f"{name} is empty")
    return text
