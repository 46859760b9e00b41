"""The trajectory store: what happened in every trial, token by token, from the first call to years later.

Promises: what was acknowledged survives ``kill -9`` at any instant; each token is stored once, its logprob bit for bit;
the truth is files, the index is rebuilt from them; exactly one process writes the index, on local disk; nothing on
shared storage is ever locked; a file of an older schema is read, one of a newer schema is refused.

Three layouts hold trials, and ``open_run`` reads all of them:

- *batch* (``batch``): two files for hundreds of short trusted trials, the quickstart's layout;
- *hot* (``hot``): one directory per trial, written while it runs;
- *cold* (``pack``, ``cold``): Parquet parts for keeping, moving and analysing.
"""

from journeyman.trials.store.batch import COLUMN_NAMES, keep_aside, read_summaries, read_tokens, write_batch
from journeyman.trials.store.hot import HotTrial
from journeyman.trials.store.owner import Owner
from journeyman.trials.store.rows import TrialRow
from journeyman.trials.store.run import Run, open_run

__all__ = [
    "COLUMN_NAMES",
    "HotTrial",
    "Owner",
    "Run",
    "TrialRow",
    "keep_aside",
    "open_run",
    "read_summaries",
    "read_tokens",
    "write_batch",
]
