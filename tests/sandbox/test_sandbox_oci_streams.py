"""Markers between output, however the stream is cut; engines that do not answer; the system-call profile. No podman."""

from __future__ import annotations

import json
import stat
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox.capture import Captured
from journeyman.sandbox.oci import engine, profile
from journeyman.sandbox.oci.streams import Marked
from journeyman.sandbox.seccomp import DENIED

TOKEN = "2a-0123456789ab"


def fed(data: bytes, cuts: list[int]) -> tuple[bytes, list[str]]:
    """What is kept of a stream that arrives in pieces, and the words after the token."""
    stream, kept = Marked(), Captured(1 << 20)
    stream.expect(TOKEN)
    stream.keep(kept)
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    for start, end in pairwise(places):
        stream.add(data[start:end])
    words = []
    while (word := stream.word()) is not None:
        words.append(word)
    return kept.result(text=False)[0], words


@given(
    st.binary(max_size=60),
    st.one_of(st.binary(max_size=60), st.just(b"2a-01234567"), st.just(b"2a-0123456789ab")),
    st.binary(max_size=30),
    st.lists(st.integers(0, 200), max_size=12),
)
def test_exactly_what_lies_between_the_markers_is_kept(
    before: bytes, output: bytes, after: bytes, cuts: list[int]
) -> None:
    data = before + b"%b begin\n%b%b 7\n%b" % (TOKEN.encode(), output, TOKEN.encode(), after)
    assert fed(data, cuts) == (output, ["7"])


def test_a_command_that_prints_the_token_with_more_than_a_status_ends_nothing() -> None:
    marker = TOKEN.encode()
    output = marker + b" is what I was told, and no status"
    assert fed(marker + b" begin\n" + output + marker + b" 0\n", [])[1] == ["0"]


def test_a_command_that_did_not_end_leaves_all_it_printed() -> None:
    stream, kept = Marked(), Captured(100)
    stream.expect(TOKEN)
    stream.keep(kept)
    stream.add(f"{TOKEN} begin\nhalf {TOKEN[:5]}".encode())
    stream.flush()
    assert kept.result()[0] == f"half {TOKEN[:5]}".encode()
    assert stream.word() is None


def fake(path: Path, says: str, status: int = 0) -> Path:
    path.write_text(f"#!/bin/sh\ncat <<'E'\n{says}\nE\nexit {status}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_a_client_without_a_daemon_is_passed_over_with_a_fix(tmp_path: Path) -> None:
    client = fake(tmp_path / "docker", json.dumps({"ServerErrors": ["Cannot connect to the Docker daemon"]}), 1)
    found = engine.look_at("docker", str(client))
    assert isinstance(found, engine.Absence)
    assert "Cannot connect" in found.reason
    assert "daemon" in found.fix
    silent = engine.look_at("podman", str(fake(tmp_path / "podman", "no JSON", 125)))
    assert isinstance(silent, engine.Absence)
    assert silent.fix


def test_what_is_named_and_not_there_is_an_environment_that_lacks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOURNEYMAN_OCI", str(tmp_path / "none"))
    with pytest.raises(EnvironmentMissing, match="no container program works here"):
        engine.find_engine()
    monkeypatch.delenv("JOURNEYMAN_OCI")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentMissing, match="neither podman nor docker"):
        engine.find_engine()


def info(**host: object) -> str:
    return json.dumps({"version": {"Version": "5.0"}, "host": {"cgroupVersion": "v2", **host}})


def test_a_podman_machine_is_not_this_kernel_and_rootless_on_cgroup_v1_has_no_limits(tmp_path: Path) -> None:
    controllers = ["memory", "pids", "cpu"]
    machine = fake(
        tmp_path / "machine",
        info(
            serviceIsRemote=True,
            cgroupControllers=controllers,
            security={"rootless": True},
            ociRuntime={"name": "crun"},
        ),
    )
    found = engine.look_at("podman", str(machine))
    assert isinstance(found, engine.Engine)
    assert (found.is_local, found.options, found.limits) == (False, (), {"memory", "pids", "cpus"})
    old = fake(
        tmp_path / "old",
        info(
            cgroupVersion="v1", cgroupControllers=controllers, security={"rootless": True}, ociRuntime={"name": "runc"}
        ),
    )
    found = engine.look_at("podman", str(old))
    assert isinstance(found, engine.Engine)
    assert (found.is_local, found.limits) == (True, frozenset())


@pytest.mark.parametrize("has_default", [True, False])
def test_no_rule_of_the_profile_allows_what_is_denied(has_default: bool, tmp_path: Path) -> None:
    default = tmp_path / "seccomp.json"
    if has_default:
        rule = {"names": ["read", "mount", "clone", "clone3", "unshare"], "action": "SCMP_ACT_ALLOW", "args": []}
        default.write_text(json.dumps({"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [rule]}))
    made = json.loads(profile.profile.__wrapped__(default))
    allowed = {name for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" for name in rule["names"]}
    denied = {name for rule in made["syscalls"] if rule["action"] == "SCMP_ACT_ERRNO" for name in rule["names"]}
    assert not allowed & set(DENIED)
    assert set(DENIED) | {"clone3"} <= denied
    assert "clone" in (allowed if has_default else denied)
    assert ("read" in allowed) == has_default
