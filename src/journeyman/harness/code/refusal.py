"""What a tool of this harness cannot do for the policy, in words; and paths as it writes them."""

from __future__ import annotations

import posixpath


class Refusal(Exception):
    """The call cannot be served for a reason the policy can act on; the text follows ``error: ``."""


def absolute(root: str, path: str) -> str:
    """A path as the sandbox knows it.

    Raises:
        Refusal: it is empty or holds a NUL.
    """
    if not path or "\0" in path:
        raise Refusal("a path is needed, without NUL bytes")
    return posixpath.normpath(posixpath.join(root, path))
