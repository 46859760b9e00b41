"""Attacks that every isolating provider has to hold, each of harness reference 2.5 and the prober of issue 2."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from journeyman.sandbox import hierarchy
from journeyman.sandbox.bwrap import refuse_unenforceable
from journeyman.sandbox.errors import ExecTimeout, LimitUnenforceable, TransferFailed
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec
from journeyman.sandbox.reaper import traces
from journeyman.sandbox.seccomp import ARCHITECTURES, DENIED

Opener = Callable[..., Sandbox]

needs_memory_group = pytest.mark.skipif(
    "memory" not in hierarchy.bases().parents, reason="capability memory: no memory group can be made here"
)
needs_pids_group = pytest.mark.skipif(
    "pids" not in hierarchy.bases().parents, reason="capability pids: no pids group can be made here"
)
needs_cpu_group = pytest.mark.skipif(
    "cpu" not in hierarchy.bases().parents, reason="capability cpus: no cpu group can be made here"
)


def needs(provider: Provider, capability: str) -> None:
    """Skip what a provider does not say it keeps."""
    if capability not in provider.supports:
        pytest.skip(f"capability {capability}: provider {provider.name} does not keep it here")


@needs_pids_group
def test_a_fork_bomb_stays_below_the_limit_and_dies_at_once(
    open_isolated: Opener, isolating: Provider, environment: AgentEnvironment, label: str
) -> None:
    sandbox = open_isolated(environment=environment, pids=64)
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    with pytest.raises(ExecTimeout) as caught:
        sandbox.exec(["python3", "-c", bomb], deadline_s=1.0)
    assert caught.value.elapsed_s < 3
    (info,) = isolating.list(label)
    assert info.num_processes == (2 if isolating.name == "bwrap" else 1)
    groups = [group for trace in traces(label).values() for group in trace.groups]
    peaks = [int((g / "pids.peak").read_text()) for g in groups if (g / "pids.peak").exists()]
    assert all(peak <= 64 + 3 for peak in peaks)  # bubblewrap's monitor, the supervisor, the launching thread
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


@needs_memory_group
def test_allocating_past_the_limit_is_killed_and_reported_as_the_sandboxes(
    open_isolated: Opener, environment: AgentEnvironment
) -> None:
    sandbox = open_isolated(environment=environment, memory_mb=128)
    result = sandbox.exec(["python3", "-c", "x = b'x' * (2 << 30)"], deadline_s=30)
    assert result.return_code == 137
    assert result.oom_kills >= 1
    after = sandbox.exec("echo alive", deadline_s=5)
    assert (after.stdout, after.oom_kills) == (b"alive\n", 0)


@needs_memory_group
def test_a_filled_tmpfs_counts_as_memory(open_isolated: Opener) -> None:
    sandbox = open_isolated(memory_mb=64, disk_mb=500)
    result = sandbox.exec("head -c 300000000 /dev/zero >/ws/big", deadline_s=30)
    assert result.return_code == 137
    assert result.oom_kills >= 1


def test_one_large_file_stops_at_the_limit(open_isolated: Opener, tmp_path: Path) -> None:
    sandbox = open_isolated(disk_mb=8, mounts=(Mount(tmp_path, "/shared", writable=True),))
    assert sandbox.exec("head -c 100000000 /dev/zero >/shared/big", deadline_s=30).return_code != 0
    assert (tmp_path / "big").stat().st_size == 8 << 20


def test_many_files_find_the_disk_full(open_isolated: Opener) -> None:
    result = open_isolated(disk_mb=8).exec(
        "i=0; while [ $i -lt 20 ]; do head -c 1000000 /dev/zero >f$i || exit 3; i=$((i+1)); done", deadline_s=30
    )
    assert result.return_code == 3
    assert b"No space left" in result.stderr


def test_an_upload_to_a_full_disk_says_so_and_leaves_the_sandbox_in_step(open_isolated: Opener) -> None:
    sandbox = open_isolated(disk_mb=2)
    with pytest.raises(TransferFailed, match=r"No space left|File size limit"):
        sandbox.upload(b"touch /ws/smuggled\n" * 300_000, "/ws/big", deadline_s=20)
    assert sandbox.exec("ls /ws", deadline_s=5).stdout == b"big\n"


@needs_cpu_group
def test_a_busy_loop_gets_no_more_than_its_share(open_isolated: Opener, environment: AgentEnvironment) -> None:
    sandbox = open_isolated(environment=environment, cpus=0.5)
    program = (
        "import time; end = time.monotonic() + 1.5\nwhile time.monotonic() < end: pass\nprint(time.process_time())"
    )
    used_s = float(sandbox.exec(["python3", "-c", program], deadline_s=30).stdout)
    assert used_s < 0.5 * 1.5 + 0.2


def test_there_is_no_network(open_isolated: Opener, environment: AgentEnvironment) -> None:
    program = """
        import socket
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                socket.socket(socket.AF_INET, kind).connect(("192.0.2.1", 53))
                print("reached")
            except OSError as error:
                print(error.strerror)
        """
    result = open_isolated(environment=environment).exec(["python3", "-c", textwrap.dedent(program)], deadline_s=10)
    assert result.stdout == b"Network is unreachable\n" * 2


def test_only_the_work_areas_can_be_written(open_isolated: Opener, environment: AgentEnvironment) -> None:
    result = open_isolated(environment=environment).exec(
        "for d in / /usr/bin /usr/lib /etc /opt /opt/agent /opt/agent/lib /opt/python/lib /proc /ws /tmp /dev/shm; do"
        " (: >$d/x) 2>/dev/null && echo $d; done",
        deadline_s=10,
    )
    assert result.stdout.decode().split() == ["/ws", "/tmp", "/dev/shm"]


def test_the_inside_has_no_privileges(
    open_isolated: Opener, isolating: Provider, environment: AgentEnvironment
) -> None:
    needs(isolating, "privileges")
    sandbox = open_isolated(environment=environment)
    status = sandbox.exec("cat /proc/self/status; id -u", deadline_s=10).stdout.decode()
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert {fields[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert (fields["Seccomp"].strip(), fields["NoNewPrivs"].strip()) == ("2", "1")
    assert status.splitlines()[-1] == "1000"
    assert sandbox.exec("unshare -U true", deadline_s=10).return_code != 0
    assert sandbox.exec("mount -t tmpfs none /ws", deadline_s=10).return_code != 0


def test_denied_system_calls_fail_and_ordinary_ones_do_not(
    open_isolated: Opener, isolating: Provider, environment: AgentEnvironment
) -> None:
    needs(isolating, "privileges")
    column = ARCHITECTURES[os.uname().machine][0]
    numbers = [pair[column] for name, pair in DENIED.items() if name != "reboot"]
    refusals = (errno.ENOSPC,) if isolating.name == "bwrap" else (errno.EPERM, errno.ENOSYS)
    program = f"""
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        for number in {numbers}:
            assert libc.syscall(number, 0, 0, 0, 0, 0) == -1 and ctypes.get_errno() == errno.EPERM, number
        # a new user namespace by clone(2), which a filter on numbers alone cannot deny
        assert libc.syscall({56 if column == 0 else 220}, 0x10000000 | 17, 0, 0, 0, 0) == -1
        print(libc.getpid() > 0, ctypes.get_errno() in {refusals})
        """
    result = open_isolated(environment=environment).exec(["python3", "-c", textwrap.dedent(program)], deadline_s=10)
    assert (result.stdout, result.stderr) == (b"True True\n", b"")


def test_processes_of_the_host_and_of_other_sandboxes_cannot_be_seen(open_isolated: Opener) -> None:
    other = open_isolated()
    other.exec("sleep 4711 &", deadline_s=5)
    pids = open_isolated().exec("cd /proc; echo [0-9]*", deadline_s=5).stdout.split()
    assert len(pids) == 2  # the supervisor and this shell
    assert open_isolated().exec("cat /proc/[0-9]*/cmdline", deadline_s=5).stdout.find(b"4711") < 0


def test_a_daemon_ends_with_its_sandbox(open_isolated: Opener) -> None:
    sandbox = open_isolated()
    sandbox.exec("setsid nohup sleep 47114711 >/dev/null 2>&1 &", deadline_s=5)
    assert appears("47114711")
    sandbox.destroy()
    assert not running("47114711")


def appears(word: str) -> bool:
    """Whether such a process is there soon: one that is just becoming another program shows no command line."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if running(word):
            return True
        time.sleep(0.01)
    return False


def running(word: str) -> bool:
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            lines.append(path.read_bytes().split(b"\0"))
        except OSError:
            continue
    return any(word.encode() in line for line in lines)


def test_the_supervisor_cannot_be_killed_from_inside(open_isolated: Opener) -> None:
    sandbox = open_isolated()
    sandbox.exec("kill -9 1; kill -9 -1", deadline_s=5)
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


PROBER = r"""
import importlib, os, sys
found = []
words = [word.encode() for word in sys.argv[1:]]
try:
    importlib.import_module("journey" + "man")
    found.append("import")
except ModuleNotFoundError:
    pass
def look(name, data):
    found.extend(name for word in words if word in data)
def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""
visited = 0
for root, directories, files in os.walk("/"):
    directories[:] = [d for d in directories if os.path.join(root, d) not in ("/sys", "/proc", "/usr/lib", "/dev")]
    for name in [*directories, *files]:
        look(os.path.join(root, name), name.encode())
    for name in files:
        visited += 1
        if root.startswith(("/usr", "/opt/python")):
            continue  # the distribution's own files: their names are enough
        look(os.path.join(root, name), read(os.path.join(root, name)))
for pid in [p for p in os.listdir("/proc") if p.isdigit() and p != str(os.getpid())] + ["self"]:
    for name in ("environ", "cmdline", "maps", "mountinfo", "cgroup", "status", "comm", "limits", "stat"):
        if (pid, name) != ("self", "cmdline"):
            look(f"/proc/{pid}/{name}", read(f"/proc/{pid}/{name}"))
    for name in ("exe", "cwd", "root"):
        try:
            look(f"/proc/{pid}/{name}", os.readlink(f"/proc/{pid}/{name}").encode())
        except OSError:
            pass
for name in ("cmdline", "mounts", "version", "keys", "net/unix", "sysvipc/shm"):
    look("/proc/" + name, read("/proc/" + name))
look("environ", repr(dict(os.environ)).encode())
print(visited > 500, sorted(set(found)))
"""


def test_a_prober_finds_neither_this_program_nor_seed_nor_canary(
    open_isolated: Opener, environment: AgentEnvironment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seed, canary = "seed-5837264519", "canary-9f86d081884c"
    monkeypatch.setenv("RUN_SEED", seed)
    (tmp_path / "truth.json").write_text(canary)
    sandbox = open_isolated(environment=environment)
    sandbox.upload(PROBER.encode(), "/tmp/prober.py", deadline_s=10)
    result = sandbox.exec(["python3", "/tmp/prober.py", seed, canary], deadline_s=60)
    found = result.stdout.decode()
    assert found == "True ['/proc/1/maps']\n" or found == "True []\n", found + result.stderr.decode()


def test_the_prober_finds_what_is_there(open_isolated: Opener, environment: AgentEnvironment) -> None:
    sandbox = open_isolated(environment=environment, env={"LEAK": "canary-1"})
    sandbox.upload(b"xx canary-2", "/ws/file", deadline_s=10)
    sandbox.upload(PROBER.encode(), "/tmp/prober.py", deadline_s=10)
    result = sandbox.exec(["python3", "/tmp/prober.py", "canary-1", "canary-2"], deadline_s=60)
    assert "'/proc/self/environ'" in result.stdout.decode()
    assert "'/ws/file'" in result.stdout.decode()


OWNER = """
import sys, time
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.protocol import SandboxSpec
from journeyman.sandbox.usage import CpuMeter
meter = CpuMeter.start(sys.argv[1])
spec = SandboxSpec(sys.argv[1], waive=frozenset({"memory", "pids"}))
provider = PROVIDERS[sys.argv[2]]()
sandboxes = [provider.create(spec) for _ in range(3)]
sandboxes[0].exec("setsid sleep 815815 & sleep 815815 &", deadline_s=5)
print("ready", flush=True)
sandboxes[1].exec("trap '' TERM; while :; do :; done", deadline_s=100)
"""


def test_after_the_owner_is_killed_everything_is_gone_within_two_seconds(isolating: Provider, label: str) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, label, isolating.name], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        assert len(isolating.list(label)) == 3
        assert appears("815815")
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        killed_at = time.monotonic()
        while running("815815") or any(info.num_processes for info in isolating.list(label)):
            assert time.monotonic() - killed_at < 2, "processes outlived their owner"
            time.sleep(0.02)
        assert all(info.is_orphan for info in isolating.list(label))
        reaped = isolating.reap(label)
        # without groups nothing is left to remove; a guard removes containers at the same time
        assert len(reaped) >= 3 or not hierarchy.bases().parents or isolating.name == "oci"
        assert traces(label) == {}
        assert time.monotonic() - killed_at < 2


def test_a_limit_that_cannot_be_kept_is_refused_unless_it_is_waived(label: str) -> None:
    spec = SandboxSpec(label)
    with pytest.raises(LimitUnenforceable, match=r'cannot enforce memory.*\n.*\n.*waive = \["memory"\]'):
        refuse_unenforceable("bwrap", spec, frozenset({"pids", "disk"}))
    refuse_unenforceable("bwrap", SandboxSpec(label, waive=frozenset({"memory"})), frozenset({"pids", "disk"}))
    with pytest.raises(LimitUnenforceable, match="cpus"):
        refuse_unenforceable("bwrap", SandboxSpec(label, cpus=1.0), frozenset({"pids", "disk", "memory"}))
