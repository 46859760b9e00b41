"""Where no control group can be made: memory is refused or, once waived, looked at and bounded within a second."""

from __future__ import annotations

import json
import os
import sys

import pytest
from sandbox_hosts import run, without_groups

PROGRAM = r"""
import json, sys, tempfile, threading, time
from pathlib import Path
from journeyman.sandbox import PROVIDERS, proctree
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.errors import LimitUnenforceable
from journeyman.sandbox.protocol import SandboxSpec

LIMIT_MB = 400
BURST = '''
import os, time
for _ in range(4):
    if not os.fork():
        time.sleep(3)  # by then a parent that does not wait has ended, and no command runs
        x = bytearray(b"x") * (300 << 20)
        time.sleep(60)
{wait}
'''
said = {}
provider = PROVIDERS["bwrap"]()
said["supports"] = sorted(provider.supports)
refused = []
for fields in ({}, {"waive": frozenset({"memory"})}):
    try:
        provider.create(SandboxSpec("ungrouped", **fields)).destroy()
    except LimitUnenforceable as error:
        refused.append(error.limit)
said["refused"] = refused
environment = build_environment(Path(sys.argv[1]))
sandbox = provider.create(SandboxSpec("ungrouped", environment=environment, memory_mb=LIMIT_MB,
                                      waive=frozenset({"memory", "pids"})))
supervisor = sandbox._processes.supervisor()
over_since, longest_s, stop = None, 0.0, threading.Event()

def sample():
    global over_since, longest_s
    while not stop.wait(0.02):
        if proctree.resident_bytes(supervisor) > LIMIT_MB << 20:
            over_since = over_since or time.monotonic()
            longest_s = max(longest_s, time.monotonic() - over_since)
        else:
            over_since = None

threading.Thread(target=sample, daemon=True).start()
waited = sandbox.exec(["python3", "-c", BURST.format(wait="os.wait()")], deadline_s=30)
said["waited"] = [waited.return_code != 0, waited.oom_kills]
left = sandbox.exec(["python3", "-c", BURST.format(wait="")], deadline_s=30)  # its children go on when it has ended
time.sleep(1)
deadline = time.monotonic() + 20
while proctree.descendants(supervisor) and time.monotonic() < deadline:
    time.sleep(0.05)
said["left"] = [left.return_code, len(proctree.descendants(supervisor))]
stop.set()
said["over_s"] = longest_s
after = sandbox.exec("echo alive", deadline_s=10)
said["after"] = after.stdout.decode()
sandbox.destroy()
said["threads"] = sum(thread.name == "sandbox-memory" for thread in threading.enumerate())
time.sleep(0.6)
said["threads_later"] = sum(thread.name == "sandbox-memory" for thread in threading.enumerate())
print(json.dumps(said))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="an ordinary user has no groups anyway: test_sandbox_unprivileged.py")
def test_without_a_control_group_memory_is_refused_or_bounded_within_a_second(bwrap: object, tmp_path: object) -> None:
    done = run(without_groups([sys.executable, "-c", PROGRAM, str(tmp_path)]))
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert not {"memory", "pids", "cpus"} & set(said["supports"])
    assert said["refused"] == ["memory", "pids"]  # pids too: a resource limit of the user does not bind root
    assert said["waited"] == [True, 1]
    assert said["left"] == [0, 0]
    assert said["over_s"] < 1.0
    assert said["after"] == "alive\n"
    assert said["threads_later"] == 0
