"""A pytest plugin: no conftest and no plugin of an agent is loaded in a verifier. See ``sitecustomize`` beside it.

A conftest that the author of the task put into the environment, and that is unchanged, is loaded as ever.
"""

# ruff: noqa: PTH118

import os
import sys
from typing import Any

import pytest
from sitecustomize import is_known, is_untrusted  # type: ignore[import-not-found]

# Loaded before the plugins of installed distributions: what an agent left must not look like one of them.
_held = [place for place in sys.path if is_untrusted(place or os.curdir)]
sys.path[:] = [place for place in sys.path if place not in _held]


def is_refused(folder: Any) -> bool:
    """Whether the conftest of a folder is an agent's."""
    path = os.path.join(str(folder), "conftest.py")
    return os.path.lexists(path) and is_untrusted(path) and not is_known(path)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any) -> None:
    """Pytest asks whether a folder is within its bounds before it loads the conftest there."""
    sys.path.extend(_held)
    manager = early_config.pluginmanager
    inherited = getattr(manager, "_is_in_confcutdir", None)
    if inherited is None:  # an old pytest: without the place to ask in, no conftest at all
        early_config.known_args_namespace.noconftest = True
        return
    manager._is_in_confcutdir = lambda path: inherited(path) and not is_refused(path)
