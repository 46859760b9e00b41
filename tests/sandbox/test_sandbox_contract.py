"""What every provider promises, whatever it isolates."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.sandbox.errors import ExecTimeout, SandboxLost, TransferFailed
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox, SandboxSpec

Opener = Callable[..., Sandbox]
ALL_WAIVED = frozenset({"memory", "pids"})


def alive_in(provider: Provider, label: str) -> int:
    return sum(info.num_processes for info in provider.list(label))


def test_a_command_gives_its_output_and_status(open_sandbox: Opener) -> None:
    result = open_sandbox().exec("echo out; echo err >&2; exit 7", deadline_s=5)
    assert (result.return_code, result.stdout, result.stderr, result.omitted_bytes) == (7, b"out\n", b"err\n", 0)


def test_a_missing_program_is_a_result_and_no_error(open_sandbox: Opener) -> None:
    result = open_sandbox().exec(["no-such-program"], deadline_s=5)
    assert result.return_code == 127
    assert b"no-such-program" in result.stderr


def test_words_of_an_argv_arrive_unchanged(open_sandbox: Opener) -> None:
    words = ["a b", "'", '"', "$HOME", "`id`", "*", "", "-n", "a\nb", "\\", "é", ";exit 1"]
    result = open_sandbox().exec(["printf", "[%s]", *words], deadline_s=5)
    assert result.stdout.decode() == "".join(f"[{word}]" for word in words)


def test_a_command_with_a_nul_byte_or_a_bad_variable_is_refused(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    for arguments in ({"command": "echo \0"}, {"command": []}, {"command": "true", "env": {"A-B": "1"}}):
        with pytest.raises(InputError):
            sandbox.exec(deadline_s=5, **arguments)  # type: ignore[arg-type]
    assert sandbox.alive(deadline_s=5)


def test_a_command_that_reads_its_input_finds_the_end_of_it(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    assert sandbox.exec("cat; echo done", deadline_s=5).stdout == b"done\n"
    assert sandbox.exec("echo next", deadline_s=5).stdout == b"next\n"


def test_directory_and_variables_hold_for_one_command(open_sandbox: Opener) -> None:
    sandbox = open_sandbox(env={"FIXED": "yes"})
    sandbox.exec("mkdir sub", deadline_s=5)
    first = sandbox.exec("pwd; echo $FIXED $MORE", deadline_s=5, cwd="/ws/sub", env={"MORE": "it's so"})
    assert first.stdout.decode().splitlines()[0].endswith("/ws/sub")
    assert first.stdout.endswith(b"yes it's so\n")
    second = sandbox.exec("pwd; echo $FIXED $MORE", deadline_s=5)
    assert second.stdout.decode().splitlines()[0].endswith("/ws")
    assert second.stdout.endswith(b"yes\n")


def test_a_directory_that_is_not_there_fails_the_command(open_sandbox: Opener) -> None:
    result = open_sandbox().exec("echo ran", deadline_s=5, cwd="/ws/none")
    assert result.return_code != 0
    assert result.stdout == b""


def test_after_a_deadline_the_whole_tree_is_dead_and_the_sandbox_still_serves(
    open_sandbox: Opener, provider: Provider, label: str
) -> None:
    sandbox = open_sandbox()
    before = alive_in(provider, label)
    command = (
        "echo started; trap '' TERM INT HUP; sleep 1001 & (sleep 1002 & sleep 1003) & while :; do sleep 0.01; done"
    )
    with pytest.raises(ExecTimeout) as caught:
        sandbox.exec(command, deadline_s=0.5)
    assert caught.value.stdout == b"started\n"
    assert 0.5 <= caught.value.elapsed_s < 2.5
    assert alive_in(provider, label) == before
    assert sandbox.exec("echo still here", deadline_s=5).stdout == b"still here\n"


def test_a_deadline_that_passes_before_the_command_began_costs_the_command_alone(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.exec("sleep 1004 >/dev/null 2>&1 &", deadline_s=5)
    for number in range(12):
        with pytest.raises(ExecTimeout):
            sandbox.exec("sleep 1005", deadline_s=0.0002 * (1 + number))
    assert sandbox.exec("echo still here", deadline_s=5).stdout == b"still here\n"


def test_a_sweep_kills_what_runs_and_nothing_else(open_sandbox: Opener, provider: Provider, label: str) -> None:
    sandbox = open_sandbox()
    before = alive_in(provider, label)
    sandbox.exec("(sleep 1006 & sleep 1007) >/dev/null 2>&1 &", deadline_s=5)
    assert sandbox.sweep(deadline_s=10)
    assert alive_in(provider, label) == before
    assert sandbox.sweep(deadline_s=10)
    assert sandbox.exec("echo still here", deadline_s=5).stdout == b"still here\n"


def test_a_command_returns_although_its_background_process_holds_the_output(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    started = time.monotonic()
    assert sandbox.exec("sleep 30 & echo ready", deadline_s=10).stdout == b"ready\n"
    assert time.monotonic() - started < 5


def test_what_a_background_process_writes_later_is_not_taken_for_the_next_command(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.exec("(sleep 0.2; echo late) & true", deadline_s=5)
    time.sleep(0.6)
    assert sandbox.exec("echo own", deadline_s=5).stdout == b"own\n"


def test_output_is_cut_between_characters_and_what_is_omitted_is_counted(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    text = "\U0001f4d0" * 50
    result = sandbox.exec(["printf", "%s", text], deadline_s=5, max_output_bytes=99)
    assert result.stdout.decode() == "\U0001f4d0" * 24
    assert result.omitted_bytes == 200 - 96


def test_a_flood_of_output_ends_at_the_deadline_with_flat_memory(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    before = resident_kib()
    started = time.monotonic()
    with pytest.raises(ExecTimeout) as caught:
        sandbox.exec("yes", deadline_s=1.0, max_output_bytes=1000)
    assert time.monotonic() - started < 3
    assert len(caught.value.stdout) == 1000
    assert caught.value.omitted_bytes > 10_000
    assert resident_kib() - before < 16_000


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * (os.sysconf("SC_PAGE_SIZE") // 1024)


@pytest.mark.parametrize("size", [0, 1, 70_000, 20_000_000])
def test_a_file_comes_back_as_it_was_sent(open_sandbox: Opener, size: int) -> None:
    sandbox = open_sandbox()
    data = (b"line\n\0\xff" * (size // 7 + 1))[:size]
    sandbox.upload(data, "/ws/new folder/it's a file", deadline_s=20)
    assert sandbox.download("/ws/new folder/it's a file", deadline_s=20, max_bytes=20_000_000) == data
    assert sandbox.exec("echo in step", deadline_s=5).stdout == b"in step\n"


def test_a_transfer_that_cannot_be_done_says_why_and_leaves_the_sandbox_in_step(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.upload(b"x" * 11, "/ws/file", deadline_s=5)
    with pytest.raises(TransferFailed, match="no such file"):
        sandbox.download("/ws/none", deadline_s=5)
    with pytest.raises(TransferFailed, match="larger than 10"):
        sandbox.download("/ws/file", deadline_s=5, max_bytes=10)
    with pytest.raises(TransferFailed, match=r"[Nn]ot a directory|File exists"):
        sandbox.upload(b"echo smuggled\n" * 1000, "/ws/file/below", deadline_s=5)
    assert sandbox.exec("echo in step", deadline_s=5).stdout == b"in step\n"


def test_a_pipe_planted_as_a_file_cannot_hold_a_download(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.exec("mkfifo trap", deadline_s=5)
    with pytest.raises(TransferFailed):
        sandbox.download("/ws/trap", deadline_s=2)


def test_a_destroyed_sandbox_refuses_further_work(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.destroy()
    sandbox.destroy()
    assert not sandbox.alive(deadline_s=1)
    with pytest.raises(SandboxLost):
        sandbox.exec("true", deadline_s=1)


def test_a_supervisor_that_is_killed_is_noticed_at_once(open_sandbox: Opener, provider: Provider, label: str) -> None:
    sandbox = open_sandbox()
    timer = threading.Timer(0.3, lambda: sandbox.destroy())
    timer.start()
    started = time.monotonic()
    with pytest.raises(SandboxLost):
        sandbox.exec("sleep 60", deadline_s=60)
    assert time.monotonic() - started < 5
    timer.join()
    assert provider.list(label) == []


def test_list_names_what_is_alive_and_only_that(open_sandbox: Opener, provider: Provider, label: str) -> None:
    sandboxes = [open_sandbox() for _ in range(3)]
    infos = provider.list(label)
    assert sorted(info.id for info in infos) == sorted(sandbox.id for sandbox in sandboxes)
    assert {(info.label, info.owner_pid, info.is_orphan) for info in infos} == {(label, os.getpid(), False)}
    assert provider.reap(label) == []
    sandboxes[0].destroy()
    assert len(provider.list(label)) == 2


def test_sandboxes_serve_many_threads_at_once(open_sandbox: Opener) -> None:
    sandboxes = [open_sandbox() for _ in range(8)]

    def work(index: int) -> bytes:
        sandbox = sandboxes[index % 8]
        sandbox.upload(b"%d" % index * 1000, f"/ws/{index}", deadline_s=30)
        return sandbox.exec(f"cat {index} | wc -c", deadline_s=30).stdout

    with ThreadPoolExecutor(16) as pool:
        assert [int(count) for count in pool.map(work, range(32))] == [1000 * len(str(i)) for i in range(32)]


def test_a_sandbox_outlives_the_thread_that_asked_for_it(open_sandbox: Opener) -> None:
    made: list[Sandbox] = []
    thread = threading.Thread(target=lambda: made.append(open_sandbox()))
    thread.start()
    thread.join()
    time.sleep(0.1)
    assert made[0].exec("echo alive", deadline_s=5).stdout == b"alive\n"


def test_mounts_are_read_only_writable_or_copy_on_write_as_asked(open_sandbox: Opener, tmp_path: Path) -> None:
    for name in ("shared", "overlay"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("old")
    sandbox = open_sandbox(
        mounts=(
            Mount(tmp_path / "shared", "/shared", writable=True),
            Mount(tmp_path / "overlay", "/ws", overlay=True),
        )
    )
    sandbox.upload(b"new", "/shared/file", deadline_s=5)
    assert sandbox.exec("cat file; echo new >file; cat file", deadline_s=5).stdout == b"oldnew\n"
    assert (tmp_path / "shared" / "file").read_text() == "new"
    assert (tmp_path / "overlay" / "file").read_text() == "old"


def test_a_mount_without_a_source_starts_nothing(provider: Provider, label: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        provider.create(SandboxSpec(label, mounts=(Mount(tmp_path / "none", "/data"),), waive=ALL_WAIVED))
    assert provider.list(label) == []


@pytest.mark.parametrize(
    "fields",
    [{"label": "a b"}, {"label": ""}, {"pids": 0}, {"memory_mb": -1}, {"cpus": 0.0}, {"cwd": "ws"}, {"cwd": "/a/../b"}],
)
def test_a_specification_that_makes_no_sense_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(InputError):
        SandboxSpec(**({"label": "ok"} | fields))  # type: ignore[arg-type]


def test_the_agent_environment_serves_programs_and_imports(open_sandbox: Opener, environment: AgentEnvironment) -> None:
    sandbox = open_sandbox(environment=environment)
    assert sandbox.exec("greet you", deadline_s=20).stdout == b"hello you\n"
    assert (
        sandbox.exec("python3 -c 'import handler; print(handler.handle(b\"ab\"))'", deadline_s=20).stdout == b"b'ba'\n"
    )


def test_a_program_that_was_written_inside_can_be_run(open_sandbox: Opener) -> None:
    sandbox = open_sandbox()
    sandbox.upload(b"#!/bin/sh\necho ran $1\n", "/ws/program", deadline_s=5)
    assert sandbox.exec("chmod +x program && ./program well", deadline_s=5).stdout == b"ran well\n"


def test_no_descriptor_but_the_standard_ones_reaches_a_command(open_sandbox: Opener) -> None:
    secret = os.open("/etc/passwd", os.O_RDONLY)
    os.set_inheritable(secret, True)
    try:
        listed = open_sandbox().exec("ls -l /proc/self/fd", deadline_s=5).stdout.decode()
    finally:
        os.close(secret)
    numbers = [line.split(" -> ")[0].split()[-1] for line in listed.splitlines() if " -> " in line]
    assert [n for n in numbers if n not in ("0", "1", "2")] == ["3"]  # 3 is the directory that ls itself reads
    assert "passwd" not in listed
