"""Start a vLLM server in its own environment, wait until it answers, and leave no process of it behind."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from journeyman.clock import Stopwatch
from journeyman.engines.errors import EngineError
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox.leash import leashed

INSIDE = Path(__file__).parent / "inside"
HOST = "127.0.0.1"
GRACE_S = 5.0
"""Seconds between SIGTERM and SIGKILL of the server's processes."""
TAIL_LINES = 15

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",  # the server polls beside its worker: with two threads a busy machine collapses
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_SERVER_DEV_MODE": "1",  # opens the routes of a weight push, and one that calls any worker method: loopback
    "VLLM_PLUGINS": "",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


@dataclass(frozen=True)
class ServerSpec:
    """What is served, and how.

    Attributes:
        model: directory of a Hugging Face checkpoint.
        python: interpreter of the environment that holds vLLM.
        out: folder for the log, and for what vLLM writes.
        dtype: of the weights.
        max_len: tokens of context of a request.
        rows: requests sampled at once.
        kv_gib: memory of keys and values on a CPU, GiB.
        tokenizer: False: ids only; no chat route then.
        arguments: further words for vLLM, last.
    """

    model: Path
    python: Path
    out: Path
    dtype: str = "float32"
    max_len: int = 2048
    rows: int = 32
    kv_gib: int = 1
    tokenizer: bool = False
    arguments: Sequence[str] = ()


class VllmServer:
    """A server under a watchdog that ends it when ``close`` is called or this process is gone, killed included.

    Attributes:
        url: its address on loopback.
        started_s: seconds until it answered.
        log: file with all it says.
    """

    def __init__(self, spec: ServerSpec, port: int) -> None:
        self.spec, self.port = spec, port
        self.url = f"http://{HOST}:{port}"
        self.log = spec.out / "server.log"
        self.started_s = 0.0
        spec.out.mkdir(parents=True, exist_ok=True)
        watchdog = leashed(command(spec, port), grace_s=GRACE_S, has_pipe=True)
        with self.log.open("wb") as log:
            self._watchdog = subprocess.Popen(
                watchdog, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment(spec), start_new_session=True
            )

    def wait_ready(self, deadline_s: float) -> None:
        """Until ``/health`` answers.

        Raises:
            EngineError: it ended, or did not answer in time; it is closed then, and its last words are in the message.
        """
        import httpx

        watch = Stopwatch()
        while self._watchdog.poll() is None and watch.elapsed_s < deadline_s:
            try:
                if httpx.get(f"{self.url}/health", timeout=2.0, trust_env=False).status_code == 200:
                    self.started_s = watch.elapsed_s
                    return
            except httpx.HTTPError:
                pass
            time.sleep(0.2)
        ended = self._watchdog.poll() is not None
        self.close()
        state = "ended before it answered" if ended else f"did not answer within {deadline_s:g} s"
        raise EngineError(f"the vLLM server {state}; {self.log} ends with:\n{self.last_words()}")

    @property
    def has_ended(self) -> bool:
        """The server is gone, by itself or by ``close``."""
        return self._watchdog.poll() is not None

    def last_words(self) -> str:
        """The end of the log."""
        with self.log.open(encoding="utf-8", errors="replace") as file:
            return "".join(deque(file, TAIL_LINES))

    def close(self) -> None:
        """End the server and every process of it. Idempotent.

        Raises:
            EngineError: the watchdog did not end; its processes are named.
        """
        pipe: IO[bytes] | None = self._watchdog.stdin
        if pipe is not None and not pipe.closed:
            pipe.close()
        try:
            self._watchdog.wait(GRACE_S + 15)
        except subprocess.TimeoutExpired as error:
            raise EngineError(f"the watchdog {self._watchdog.pid} of {self.url} does not end") from error

    def __enter__(self) -> VllmServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def launch(spec: ServerSpec, *, deadline_s: float = 300.0) -> VllmServer:
    """A server that answers.

    Raises:
        EnvironmentMissing: the interpreter has no vLLM. InputError: the model is no checkpoint directory.
        EngineError: the server did not come up.
    """
    if not (spec.model / "config.json").is_file():
        raise InputError(str(spec.model), "is no model directory: it holds no config.json")
    entry_module(spec.python)
    server = VllmServer(spec, free_port())
    try:
        server.wait_ready(deadline_s)
    except BaseException:
        server.close()
        raise
    return server


def command(spec: ServerSpec, port: int) -> list[str]:
    """The words that start the server."""
    words = [str(spec.python), "-m", entry_module(spec.python), "--model", str(spec.model)]
    words += ["--served-model-name", "policy", "--host", HOST, "--port", str(port), "--dtype", spec.dtype]
    words += ["--max-model-len", str(spec.max_len), "--max-num-seqs", str(spec.rows), "--enforce-eager"]
    words += ["--gpu-memory-utilization", "0.1", "--enable-scale-out", "--logprobs-mode", "processed_logprobs"]
    words += ["--weight-transfer-config", json.dumps({"backend": "safetensors_file"})]
    words += ["--worker-extension-cls", "journeyman_vllm.Extension", "--generation-config", "vllm"]
    words += ["--no-enable-log-requests", "--enable-prompt-tokens-details"]
    return [*words, *([] if spec.tokenizer else ["--skip-tokenizer-init"]), *spec.arguments]


def environment(spec: ServerSpec) -> dict[str, str]:
    """The server's environment: of ours only what a program needs, and the folder of the weight loader."""
    inherited: Mapping[str, str] = {k: v for k, v in os.environ.items() if not k.startswith(("VLLM_", "PYTHON"))}
    return {
        **inherited,
        **ENVIRONMENT,
        "VLLM_CPU_KVCACHE_SPACE": str(spec.kv_gib),
        "VLLM_CONFIG_ROOT": str(spec.out / "config"),
        "VLLM_CACHE_ROOT": str(spec.out / "cache"),
        "PYTHONPATH": str(INSIDE),
    }


def entry_module(python: Path) -> str:
    """The module that serves; it moves between releases, so the installed files decide.

    Raises:
        EnvironmentMissing: there is no such interpreter, or it has no vLLM.
    """
    find = "import importlib.util as u; s = u.find_spec('vllm'); print(s.submodule_search_locations[0] if s else '')"
    try:
        done = subprocess.run([python, "-c", find], capture_output=True, text=True, timeout=60, check=False)
    except OSError as error:
        raise EnvironmentMissing(f"{python} is no Python: `make vllm-venv` makes .venv-vllm/bin/python") from error
    package = done.stdout.strip()
    for module in ("entrypoints/openai/api_server", "entrypoints/cli/main"):
        if package and (Path(package) / f"{module}.py").is_file():
            return "vllm." + module.replace("/", ".")
    raise EnvironmentMissing(f"{python} has no vLLM that serves: `make vllm-venv` installs one into .venv-vllm")


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        port: int = found.getsockname()[1]
        return port
