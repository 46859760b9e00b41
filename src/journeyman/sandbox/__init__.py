"""sandbox: where untrusted actions run.

Promise: one protocol (``create, exec, call, upload, download, alive, destroy, list, reap``), each call with a deadline;
when it passes, the process tree inside dies; nothing of a sandbox outlives its owner. The inside sees programs, a
Python without this package, and what the spec mounts; no network, no host files, no grade. Knows nothing about tasks.
"""

from __future__ import annotations

from collections.abc import Callable

from journeyman.sandbox.protocol import Provider


def _bwrap() -> Provider:
    from journeyman.sandbox.bwrap import Bubblewrap

    return Bubblewrap()


def _oci() -> Provider:
    from journeyman.sandbox.oci import Oci

    return Oci()


def _none() -> Provider:
    from journeyman.sandbox.plain import Plain

    return Plain()


#: name -> what makes one; a process imports only the provider it uses. ``none`` isolates nothing.
PROVIDERS: dict[str, Callable[[], Provider]] = {"bwrap": _bwrap, "oci": _oci, "none": _none}
