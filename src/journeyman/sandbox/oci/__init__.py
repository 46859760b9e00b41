"""oci: sandboxes in containers of podman or docker, for hosts where bubblewrap cannot isolate, macOS among them.

Promise: the protocol of the room over the command line of either program, without a library of it. One container per
sandbox, whose first process is the supervisor or the entry program, spoken to through one attached ``run -i``. Nothing
of a container outlives its owner: a guard removes what an owner that was killed left, ``reap`` what a guard could not.
"""

from __future__ import annotations

from journeyman.sandbox.oci.provider import Oci

__all__ = ["Oci"]
