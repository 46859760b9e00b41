"""What is particular to containers: streams with markers, the kill, the guard, and what may remain on the host."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from journeyman.deadline import Deadline
from journeyman.errors import InputError
from journeyman.sandbox.errors import ExecTimeout, SandboxLost, SandboxStartFailed
from journeyman.sandbox.identity import Identity
from journeyman.sandbox.oci import Oci
from journeyman.sandbox.oci.engine import Engine, find_engine
from journeyman.sandbox.oci.names import container_name, directories, identity_of
from journeyman.sandbox.oci.root import skeleton_image
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec

pytestmark = pytest.mark.podman
Opener = Callable[..., Sandbox]
NUM_SANDBOXES = 16


def command_lines() -> list[bytes]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return found


def mount_points() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def middle(times: list[float]) -> float:
    """The median, in ms."""
    return sorted(times)[len(times) // 2] * 1000


def test_sixteen_containers_live_at_once_and_nothing_of_them_remains(oci: Provider, label: str) -> None:
    mounts_before = mount_points()
    sandboxes: list[Sandbox] = []
    started = time.monotonic()
    try:
        for index in range(NUM_SANDBOXES):
            sandboxes.append(oci.create(SandboxSpec(label)))
            sandboxes[-1].exec(f"echo {index} >file", deadline_s=30)
        alive_s = time.monotonic() - started
        infos = oci.list(label)
        assert len(infos) == NUM_SANDBOXES
        assert {info.num_processes for info in infos} == {1}
        answers = [sandbox.exec("cat file", deadline_s=30).stdout for sandbox in sandboxes]
        assert answers == [b"%d\n" % index for index in range(NUM_SANDBOXES)]
        assert sum(label.encode() in line for line in command_lines()) >= NUM_SANDBOXES
    finally:
        ending = time.monotonic()
        for sandbox in sandboxes:
            sandbox.destroy()
    print(f"16 alive after {alive_s:.1f} s, gone in {time.monotonic() - ending:.1f} s")
    assert oci.list(label) == []
    assert not any(label.encode() in line for line in command_lines() if b"pytest" not in line)
    assert directories(label) == {}
    assert mount_points() == mounts_before


def test_starting_and_commanding_are_bounded(oci: Provider, label: str) -> None:
    starts, commands, ends = [], [], []
    for _ in range(5):
        started = time.monotonic()
        sandbox = oci.create(SandboxSpec(label))
        starts.append(time.monotonic() - started)
        for _ in range(20):
            began = time.monotonic()
            sandbox.exec("true", deadline_s=5)
            commands.append(time.monotonic() - began)
        ending = time.monotonic()
        sandbox.destroy()
        ends.append(time.monotonic() - ending)
    print(f"start {middle(starts):.0f} ms, command {middle(commands):.2f} ms, destroy {middle(ends):.0f} ms")
    assert middle(starts) < 3000  # some 200 ms on an idle machine; the bounds are for a busy one
    assert middle(commands) < 50  # another process in the container would cost some hundred


def test_a_sleeper_in_a_session_of_its_own_dies_with_the_command_that_passed_its_deadline(open_oci: Opener) -> None:
    sandbox = open_oci()
    with pytest.raises(ExecTimeout):
        sandbox.exec("setsid sleep 919191 & (setsid sleep 919191 &) & sleep 919191", deadline_s=0.5)
    assert not any(b"919191" in line for line in command_lines())
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


def test_what_a_command_prints_is_kept_to_the_byte_between_the_markers(open_oci: Opener) -> None:
    sandbox = open_oci()
    for text in ("", "\n", "no newline", "0\n", "1-abc 0\n", " begin\n", "x" * 200_000, "\n\n1 2 3\n"):
        result = sandbox.exec(
            ["sh", "-c", 'printf %s "$1"; printf %s "$1" >&2', "sh", text[:100_000]],
            deadline_s=10,
            max_output_bytes=1_000_000,
        )
        assert (result.stdout, result.stderr, result.omitted_bytes) == (text[:100_000].encode(),) * 2 + (0,)


def test_variables_and_entry_programs_show_on_no_command_line(open_oci: Opener, environment: AgentEnvironment) -> None:
    sandbox = open_oci(environment=environment, env={"KEY": "canary-717171", "LINES": "a\nb 'c'"})
    assert sandbox.exec('echo "$KEY $LINES"', deadline_s=5).stdout == b"canary-717171 a\nb 'c'\n"
    assert not any(b"canary-717171" in line for line in command_lines())
    assert sandbox.exec("echo ${container-none} ${TERM-none}", deadline_s=5).stdout == b"none none\n"


def test_a_copy_on_write_mount_holds_all_kinds_of_files_and_more_than_a_work_area(
    open_oci: Opener, tmp_path: Path
) -> None:
    (tmp_path / "folder" / "inner").mkdir(parents=True)
    (tmp_path / ".hidden").write_text("hidden")
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "a file").write_text("spaces")
    (tmp_path / "big").write_bytes(bytes(5_000_000))
    sandbox = open_oci(disk_mb=2, mounts=(Mount(tmp_path, "/ws", overlay=True),))
    assert sandbox.exec("ls -A", deadline_s=5).stdout.decode().split("\n")[:-1] == sorted(
        [".hidden", "a file", "big", "folder", "link"]
    )
    assert sandbox.exec("readlink link; cat .hidden; wc -c <big", deadline_s=5).stdout == b"folder\nhidden5000000\n"
    assert sandbox.exec("rm -r folder link; echo new >'a file'; ls -A | wc -l", deadline_s=5).stdout == b"3\n"
    assert (tmp_path / "a file").read_text() == "spaces"
    assert sandbox.exec("touch /opt/lower/0/x", deadline_s=5).return_code != 0


def test_a_path_that_the_program_cannot_take_is_refused_before_anything_starts(
    oci: Provider, label: str, tmp_path: Path
) -> None:
    (tmp_path / "a,b").mkdir()
    with pytest.raises(InputError, match="comma"):
        oci.create(SandboxSpec(label, mounts=(Mount(tmp_path / "a,b", "/data"),)))
    assert oci.list(label) == []


def test_an_image_without_a_shell_starts_nothing_and_says_why(oci: Provider, label: str) -> None:
    engine = find_engine()
    image = skeleton_image(engine, Deadline.after(30, "import"))
    provider = Oci(engine, image)
    with pytest.raises(SandboxStartFailed, match=r"/bin/sh"):
        provider.create(SandboxSpec(label))
    assert provider.list(label) == []
    assert directories(label) == {}
    engine.run("rmi", "-f", image, deadline=Deadline.after(30, "removal of an image"))


GUARDED = """
import sys
from journeyman.sandbox.oci import Oci
from journeyman.sandbox.protocol import SandboxSpec
Oci().create(SandboxSpec(sys.argv[1])).exec("sleep 838383 &", deadline_s=10)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_program_that_ends_takes_its_guard_with_it(oci: Provider, label: str) -> None:
    words = [sys.executable, "-c", GUARDED, label]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        assert len(guards_of(owner.pid)) == 1
    assert owner.returncode == 0
    assert guards_of(owner.pid) == []
    assert oci.list(label) == []
    assert not any(b"838383" in line for line in command_lines())


def guards_of(owner_pid: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes()
        except OSError:
            continue
        if b"sandbox-guard" in words and f"={owner_pid}.".encode() in words:
            found.append(int(path.name))
    return found


OWNER = """
import sys
from journeyman.sandbox.oci import Oci
from journeyman.sandbox.protocol import SandboxSpec
sandbox = Oci().create(SandboxSpec(sys.argv[1]))
print("ready", flush=True)
sandbox.exec("setsid sleep 828282 & sleep 828282", deadline_s=100)
"""


def test_when_owner_and_guard_are_killed_the_container_is_an_orphan_that_reap_removes(
    oci: Provider, label: str
) -> None:
    with subprocess.Popen([sys.executable, "-c", OWNER, label], stdout=subprocess.PIPE) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"ready\n"
        for guard in guards_of(owner.pid):
            os.kill(guard, signal.SIGKILL)
        time.sleep(0.3)  # its command is running
        owner.send_signal(signal.SIGKILL)
        owner.wait()
    (info,) = oci.list(label)
    assert (info.is_orphan, info.owner_pid, info.num_processes >= 2) == (True, owner.pid, True)
    assert info.id in oci.reap(label)
    assert oci.list(label) == []
    assert not any(b"828282" in line for line in command_lines())


def test_the_name_of_a_container_tells_whose_it_is() -> None:
    identity = Identity("run.2026-11_a", 12, 345, "0a1b2c3d4e5f")
    name = container_name(identity)
    assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*", name)
    assert identity_of(name) == identity
    assert identity_of("journeyman.x") is None
    assert identity_of("web.1.2.3") is None


def test_without_a_control_group_a_sweep_inside_kills_all_but_the_supervisor(open_oci: Opener) -> None:
    sandbox = open_oci()
    processes = sandbox._processes  # type: ignore[attr-defined]
    processes._control = None  # as for a container in a virtual machine
    with pytest.raises(ExecTimeout):
        sandbox.exec("trap '' TERM; setsid sleep 737373 & sleep 737373 & sleep 737373", deadline_s=0.5)
    assert not any(b"737373" in line for line in command_lines())
    assert sandbox.exec("echo alive", deadline_s=5).stdout == b"alive\n"


def test_a_sweep_works_also_when_the_container_may_start_no_more_processes(
    open_oci: Opener, environment: AgentEnvironment
) -> None:
    sandbox = open_oci(pids=20, environment=environment)
    processes = sandbox._processes  # type: ignore[attr-defined]
    processes._control = None
    sleeper = "os.execvp('sleep', ['sleep', '747474'])"
    bomb = f"import os\nwhile True:\n    try: os.fork() or {sleeper}\n    except OSError: pass"
    with pytest.raises(ExecTimeout):
        sandbox.exec(["python3", "-c", bomb], deadline_s=1.0)
    assert not any(b"747474" in line for line in command_lines())


def test_a_container_that_cannot_be_swept_is_ended_and_the_deadline_is_what_is_reported(open_oci: Opener) -> None:
    sandbox = open_oci()
    processes = sandbox._processes  # type: ignore[attr-defined]
    processes._control, processes._engine = None, replace(processes._engine, path="/bin/false")
    with pytest.raises(ExecTimeout):
        sandbox.exec("setsid sleep 757575 & sleep 757575", deadline_s=0.5)
    assert not any(b"757575" in line for line in command_lines())
    with pytest.raises(SandboxLost):
        sandbox.exec("true", deadline_s=5)


def test_an_attached_program_that_is_killed_takes_its_container_with_it(
    open_oci: Opener, oci: Provider, label: str
) -> None:
    sandbox = open_oci()
    sandbox.exec("setsid sleep 767676 &", deadline_s=5)
    sandbox._processes.process.kill()  # type: ignore[attr-defined]
    with pytest.raises(SandboxLost):
        sandbox.exec("sleep 767676", deadline_s=10)
    assert oci.list(label) == []
    assert not any(b"767676" in line for line in command_lines())
    sandbox.destroy()


def test_a_forked_child_makes_its_own_and_leaves_its_parents(open_oci: Opener, oci: Provider, label: str) -> None:
    sandbox = open_oci()
    words = [sys.executable, "-c", FORKED, label]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split() == ["child", "parent"], done.stderr
    assert sandbox.exec("echo mine", deadline_s=5).stdout == b"mine\n"
    assert [info.id for info in oci.list(label)] == [sandbox.id]


FORKED = """
import os, sys
from journeyman.sandbox.oci import Oci
from journeyman.sandbox.protocol import SandboxSpec
provider = Oci()
sandbox = provider.create(SandboxSpec(sys.argv[1]))
child = os.fork()
if child == 0:
    said = provider.create(SandboxSpec(sys.argv[1])).exec("echo child", deadline_s=10)
    print(said.stdout.decode(), end="", flush=True)
    sys.exit(0)
os.waitpid(child, 0)
said = sandbox.exec("echo parent", deadline_s=10)
print(said.stdout.decode(), end="", flush=True)
"""


def test_the_engine_says_what_it_can_limit() -> None:
    engine = find_engine()
    assert isinstance(engine, Engine)
    assert engine.limits <= {"memory", "pids", "cpus"}
    assert engine.kind in engine.summary
