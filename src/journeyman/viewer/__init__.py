"""The viewer: the report of one run in a browser, on this machine only, read-only, without a script.

Promises: it listens on the loopback address alone, answers only requests that name it exactly (so no foreign page can
reach it), serves three fixed names of one directory and writes nothing. It contains no logic: pages are rendered when
the run writes its report.
"""

from journeyman.viewer.serve import serve

__all__ = ["serve"]
