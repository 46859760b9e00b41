"""A writer process: closes trial after trial below a run, and says on stdout what was acknowledged to it.

python store_writer.py RUN WRITER FIRST

Lines: ``call TRIAL NUMBER`` once a call is stored, ``done TRIAL DIRECTORY`` once a trial is closed. It goes on until it
is killed.
"""

from __future__ import annotations

import itertools
import sys
import time
from pathlib import Path

from store_trials import columns_of, record_of

from journeyman.trials.store import HotTrial
from journeyman.trials.store.columns import calls_of


def main(run: Path, writer: str, first: int) -> None:
    for number in itertools.count(first):
        trial_id = f"writer-{writer}/task-{number % 3}/{number}"
        with HotTrial(run, trial_id) as hot:
            for index, call in enumerate(calls_of(columns_of(trial_id))):
                hot.append_call(call)
                print("call", trial_id, index, flush=True)
                time.sleep(0.004)  # as if a model were sampling
            print("done", trial_id, hot.close(record_of(trial_id)), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
