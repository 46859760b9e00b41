"""Fixtures of the contract suite: every provider of PROVIDERS, and the check that nothing of a test remains."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator

import pytest

from journeyman.errors import EnvironmentMissing
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment, forkserver_entry
from journeyman.sandbox.oci.names import directories as container_directories
from journeyman.sandbox.plain import NotIsolated
from journeyman.sandbox.protocol import AgentEnvironment, Provider, Sandbox, SandboxSpec
from journeyman.sandbox.reaper import traces

HANDLER = """
import os, subprocess, sys, time

def handle(payload):
    word = payload.decode(errors="replace")
    if word == "raise":
        raise KeyError("no such row")
    if word == "allocate":
        return bytes(2 << 30)
    if word == "sleep":
        time.sleep(100)
    if word == "die":
        os.kill(os.getpid(), 9)
    if word == "daemon":
        subprocess.Popen(["setsid", "sleep", "100"])
    if word == "write":
        with open("/tmp/left-behind", "w") as file:
            file.write("from an earlier call")
    if word == "text":
        return "not bytes"
    if word == "exit":
        sys.exit(3)
    if word == "forge":
        os.write(1, b"\\0\\0\\0\\5\\0forged")
        for pid in os.listdir("/proc"):
            if pid.isdigit() and int(pid) != os.getpid():
                try:
                    os.open(f"/proc/{pid}/fd/1", os.O_WRONLY)
                    return b"reached the protocol of " + pid.encode()
                except OSError:
                    pass
        return b"kept out"
    return payload[::-1]
"""


def make_provider(name: str) -> Provider:
    """The provider, or a skip that names what the machine lacks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NotIsolated)
            return PROVIDERS[name]()
    except EnvironmentMissing as missing:
        pytest.skip(f"provider {name}: {missing}")


EVERY_PROVIDER = [
    pytest.param(name, marks=[pytest.mark.podman] if name == "oci" else [], id=name) for name in sorted(PROVIDERS)
]


@pytest.fixture(scope="session", params=EVERY_PROVIDER)
def provider(request: pytest.FixtureRequest) -> Provider:
    return make_provider(request.param)


@pytest.fixture(scope="session", params=[param for param in EVERY_PROVIDER if param.id != "none"])
def isolating(request: pytest.FixtureRequest) -> Provider:
    """Every provider that keeps what runs inside from the host."""
    return make_provider(request.param)


@pytest.fixture(scope="session")
def bwrap() -> Provider:
    return make_provider("bwrap")


@pytest.fixture(scope="session")
def oci() -> Provider:
    return make_provider("oci")


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    root = tmp_path_factory.mktemp("environments")
    (root / "handler.py").write_text(HANDLER)
    greeter = "#!python\nimport et_xmlfile, sys\nprint('hello', *sys.argv[1:])\n"
    return build_environment(
        root, distributions=["et_xmlfile"], packages={"handler": root / "handler.py"}, programs={"greet": greeter}
    )


@pytest.fixture
def label(request: pytest.FixtureRequest) -> Iterator[str]:
    """A label of this test; afterwards no process, group or directory carries it."""
    name = f"test-{os.getpid()}-{abs(hash(request.node.nodeid)) % 10**8}"
    yield name
    assert traces(name) == {}
    assert container_directories(name) == {}


@pytest.fixture
def open_sandbox(provider: Provider, label: str) -> Iterator[Callable[..., Sandbox]]:
    yield from opener(provider, label)


@pytest.fixture
def open_isolated(isolating: Provider, label: str) -> Iterator[Callable[..., Sandbox]]:
    yield from opener(isolating, label)


@pytest.fixture
def open_bwrap(bwrap: Provider, label: str) -> Iterator[Callable[..., Sandbox]]:
    yield from opener(bwrap, label)


@pytest.fixture
def open_oci(oci: Provider, label: str) -> Iterator[Callable[..., Sandbox]]:
    yield from opener(oci, label)


def waivable(provider: Provider) -> frozenset[str]:
    """What has to be waived on a machine without control groups to run at all."""
    return frozenset({"memory", "pids"}) - provider.supports


def opener(provider: Provider, label: str) -> Iterator[Callable[..., Sandbox]]:
    """Makes sandboxes of the label and destroys them afterwards."""
    made: list[Sandbox] = []

    def make(**fields: object) -> Sandbox:
        fields.setdefault("waive", waivable(provider))
        made.append(provider.create(SandboxSpec(label, **fields)))  # type: ignore[arg-type]
        return made[-1]

    yield make
    for sandbox in made:
        sandbox.destroy()
    assert provider.list(label) == []


@pytest.fixture
def serve_calls(open_sandbox: Callable[..., Sandbox], environment: AgentEnvironment) -> Callable[..., Sandbox]:
    """Opens a sandbox whose entry program serves ``handler:handle``."""
    return lambda **limits: open_sandbox(environment=environment, entry=forkserver_entry("handler:handle", **limits))
