"""The servers of one engine as a whole: connected, paused, resumed, given new weights, and proved to serve them."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from journeyman.clock import Stopwatch
from journeyman.deadline import Deadline
from journeyman.engines.errors import EngineError
from journeyman.engines.protocol import KvMode, PauseMode, WeightSource
from journeyman.engines.vllm import export, push, routes
from journeyman.engines.vllm.ledger import Ledger, Push, logger
from journeyman.engines.vllm.loop import Loop
from journeyman.engines.vllm.proof import TOLERANCE, Prove, Sampled, judge
from journeyman.engines.vllm.replica import CONTROL_S, Replica
from journeyman.engines.vllm.wire import label_of


class Fleet:
    """Arguments as of ``VllmEngine``. Only its owner's thread calls it."""

    def __init__(
        self,
        urls: Sequence[str],
        *,
        push_dir: Path | None,
        dtype: str,
        prove: Prove | None,
        tolerance: float | None,
        api_key: str | None,
    ) -> None:
        self.replicas = [Replica(url, api_key=api_key) for url in urls]
        self.loop = Loop("journeyman-vllm")
        self.ledger = Ledger()
        self._own_dir = None if push_dir else tempfile.TemporaryDirectory(prefix="journeyman-push-")
        self._push_dir = push_dir or Path(self._own_dir.name if self._own_dir else "")
        self._dtype, self._prove = dtype, prove
        self._tolerance = TOLERANCE[dtype] if tolerance is None else tolerance
        self._shapes: export.Shapes | None = None
        self._serving: export.WeightFile | None = None
        self._probes: dict[Replica, Sampled] = {}
        self._unproved: WeightSource | None = None
        self._unconfirmed = False

    def connect(self, version: int, deadline_s: float) -> None:
        """Reach every server, label its weights, and remember what it makes of the fixed prompt.

        Raises:
            EnvironmentMissing: one does not answer, or cannot generate from token ids.
        """

        async def connect(replica: Replica) -> None:
            await replica.connect(deadline_s)
            replica.served = version
            if not replica.routes.can_update:
                return
            if (await replica.get(routes.IS_PAUSED))["is_paused"]:  # a push was broken off: nobody knows its weights
                logger.warning("%s was found paused; it gets no turn before the next push", replica.url)
                replica.served = None
                await replica.resume()
                return
            if replica.routes.relabel:
                await replica.post(routes.RELABEL, body={"new_version": label_of(version)})
                replica.labelled = True
            self._probes[replica] = await push.probe(replica, version)

        self._all([connect(replica) for replica in self.replicas], deadline_s + CONTROL_S, "connecting to vLLM")

    @property
    def capabilities(self) -> frozenset[str]:
        found = {"seed", "top_logprobs"}
        if all(replica.tells_experts for replica in self.replicas):
            found.add("routed_experts")
        if all(replica.routes.abort for replica in self.replicas):
            found.add("cancel")
        if self.has_spans:
            found.add("spans")
        if all(replica.routes.can_update for replica in self.replicas):
            found |= {"pause_keep", "pause_wait", "kv_recompute"} | ({"inflight_update"} if self.has_spans else set())
        return frozenset(found)

    @property
    def has_spans(self) -> bool:
        """Every server reports the weight version of each token."""
        return all(replica.routes.generate == "tokens" for replica in self.replicas)

    @property
    def max_len(self) -> int:
        """Tokens of context that every server holds."""
        return min(replica.max_len for replica in self.replicas)

    def check_updatable(self) -> None:
        """Raise EngineError that names the routes a server lacks, and what to do."""
        for replica in self.replicas:
            if replica.routes.missing:
                raise EngineError(routes.missing_text(replica.url, replica.routes.missing))

    def pause(self, mode: PauseMode, kv: KvMode, deadline_s: float) -> None:
        """Pause every living server; ``recompute`` drops what it has cached of running turns."""
        self.check_updatable()
        clear = kv == "recompute"
        calls = [r.pause(mode, clear_cache=clear, deadline_s=deadline_s) for r in self.living]
        self._all(calls, deadline_s + 1, f"pause({mode})")

    def resume(self) -> None:
        """Resume every living server."""
        self._all([replica.resume() for replica in self.living], 2 * CONTROL_S, "resume")

    @property
    def living(self) -> list[Replica]:
        return [replica for replica in self.replicas if replica.alive]

    def write(self, source: WeightSource, version: int) -> tuple[export.WeightFile, float]:
        """The file of a push and the seconds it took. Raises EngineError for incomplete weights; nothing was sent."""
        watch = Stopwatch()
        file = export.write(source, version, self._push_dir, dtype=self._dtype, expected=self._shapes)
        return file, watch.elapsed_s

    def load(self, source: WeightSource, file: export.WeightFile, deadline: Deadline) -> float:
        """Every server loads the file, or all go back; seconds. The servers are paused. ``looked_at`` follows resume.

        Raises:
            EngineError: the push failed; which servers still serve the old weights is looked at after ``resume``.
        """
        watch = Stopwatch()
        limit_s = max(0.1, deadline.remaining_s)
        counters = self.metrics()
        try:
            left_out = self.loop.call(
                push.load_all(self.replicas, file, self._serving, limit_s), limit_s + 3 * CONTROL_S, "the push"
            )
        except EngineError:
            self._unconfirmed = True
            raise
        self.ledger.settle(counters)
        for words in left_out:
            logger.warning("%s", words)
        before, self._serving, self._shapes = self._serving, file, file.shapes
        self._unproved = source
        export.prune(self._push_dir, {known.path for known in (file, before) if known})
        return watch.elapsed_s

    def account(self, file: export.WeightFile, kv: KvMode, write_s: float, load_s: float) -> None:
        """Open the ledger's page of a push that was loaded."""
        entry = Push(file.version, kv, file.size_bytes, file.sha256, write_s, load_s)
        self.ledger.open(entry, self.metrics())

    def look(self) -> None:
        """After ``resume``: prove the last push, or find out who still serves the old weights after a failed one.

        Raises:
            EngineError: a server does not sample what the trainer computes; it serves no turn any more.
        """
        if self._unconfirmed:
            self._unconfirmed = False
            calls = [push.confirm(r, self._probes.get(r), self._tolerance) for r in self.living]
            self._all(calls, 4 * CONTROL_S, "looking at the servers after a failed push")
        if self._unproved is not None:
            source, self._unproved = self._unproved, None
            for replica in [replica for replica in self.living if replica.served is not None]:
                self._prove_one(replica, source)

    def _prove_one(self, replica: Replica, source: WeightSource) -> None:
        version = replica.served or 0
        now = self.loop.call(push.probe(replica, version), 4 * CONTROL_S, "the probe")
        expected = None if self._prove is None else self._prove(source, push.PROBE, now.ids)
        proof = judge(now, self._probes.get(replica), expected)
        self._probes[replica] = now
        self.ledger.proved(proof)
        if proof.by == "trainer" and not proof.gap_mean <= self._tolerance:
            replica.served = None
            raise EngineError(
                f"{replica.url} does not serve version {version}: its logprobs of a fixed prompt differ from the "
                f"trainer's by {proof.gap_mean:.2g} on average ({self._tolerance:g} allowed); it gets no more turns"
            )
        if proof.by == "none":
            logger.warning("%s samples after the push of v%d what it sampled before", replica.url, version)

    def metrics(self) -> dict[str, float]:
        """The counters of all living servers, summed; empty where none tells."""
        total: dict[str, float] = {}
        for replica in self.living:
            try:
                found = self.loop.call(replica.metrics(), CONTROL_S, "reading counters")
            except EngineError:
                continue
            for name, value in found.items():
                total[name] = total.get(name, 0.0) + value
        return total

    def close(self) -> None:
        """Close every connection and end the thread. Idempotent; the servers go on."""
        if self.loop.is_running:
            self._all([replica.close() for replica in self.replicas], CONTROL_S, "closing")
            self.loop.close()
        if self._own_dir is not None:
            self._own_dir.cleanup()

    def _all(self, calls: Sequence[Coroutine[Any, Any, object]], deadline_s: float, what: str) -> None:
        async def together() -> None:
            done = await asyncio.gather(*calls, return_exceptions=True)
            for error in done:
                if isinstance(error, BaseException):
                    raise error

        self.loop.call(together(), deadline_s, what)
