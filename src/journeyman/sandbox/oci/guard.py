"""One small process beside this program that outlives it by a moment: it removes the containers of a killed owner.

A container has no parent-death signal: the attached program may be gone and its commands still run. The guard waits for
the end of a pipe that this program holds; when it comes, it removes what carries this owner's label.
"""

from __future__ import annotations

import os
import subprocess

from journeyman.sandbox.identity import Identity
from journeyman.sandbox.launcher import launch
from journeyman.sandbox.oci import names
from journeyman.sandbox.oci.engine import Engine

_SCRIPT = (
    'trap "" INT TERM HUP; while read -r _; do :; done; owner=$1; place=$2; folders=$3; shift 3; '
    'ids=$("$@" ps -aq --filter "label=$owner" --filter "label=$place"); '
    '[ -z "$ids" ] || "$@" rm -f $ids; rm -rf $folders'
)


class Guard:
    """The guard of this process."""

    def __init__(self, engine: Engine, mine: Identity) -> None:
        """
        Args:
            engine: whose containers it removes.
            mine: any identity of this owner.

        Raises:
            OSError: it cannot be started.
        """
        read_end, self._write_end = os.pipe()
        nowhere = os.open(os.devnull, os.O_RDWR)
        labels = [f"{names.OWNER}={names.owner_of(mine)}", f"{names.PLACE}={names.place()}"]
        words = [*labels, names.directories_of_owner(mine), *engine.words()]
        try:
            self._process: subprocess.Popen[bytes] = launch(
                ["/bin/sh", "-c", _SCRIPT, "sandbox-guard", *words],
                executable="/bin/sh",
                stdin=read_end,
                stdout=nowhere,
                stderr=nowhere,
                env=dict(os.environ),
                cwd="/",
                new_session=True,
            )
        except BaseException:
            os.close(self._write_end)
            raise
        finally:
            os.close(read_end)
            os.close(nowhere)

    def dismiss(self) -> None:
        """End it without work: everything was removed."""
        self._process.kill()
        self._process.wait(5)
        os.close(self._write_end)
