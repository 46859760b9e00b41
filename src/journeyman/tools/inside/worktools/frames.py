"""``serve.handle`` with the libraries loaded, for a sandbox whose entry program is the fork server."""

from __future__ import annotations

from .daemon import preload, rehearse
from .serve import handle as handle

preload()
rehearse(8)
