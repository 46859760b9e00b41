"""``journeyman tokens agree``: open both sides, probe, judge, record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from journeyman.config import Knobs
from journeyman.errors import InputError
from journeyman.tokens.context import SOURCES
from journeyman.train.agreement.deployment import URLS, EngineChoice, TrainerChoice, write_record
from journeyman.train.agreement.gate import LEGS, LIMITS, Finding, Limits, findings
from journeyman.train.agreement.measure import Agreement, Figures, agreement
from journeyman.train.agreement.probe import Plan, Probe

if TYPE_CHECKING:
    from torch import nn

    from journeyman.engines.protocol import Engine

MOVE = 0.02
"""Relative size of the change of every weight between two versions: large enough that any tensor left behind shows."""


class ProbeSection(Knobs):
    """How much is sampled."""

    trials: int = Field(16, ge=1, description="of each leg")
    turns: int = Field(3, ge=1)
    prompt_tokens: int = Field(48, ge=1)
    append_tokens: int = Field(16, ge=1, description="what follows a turn, like a tool result")
    new_tokens: int = Field(24, ge=4, description="sampled in a turn")
    deadline_s: float = Field(300.0, gt=0)


class LimitsSection(Knobs):
    """Limits other than those of the engine's dtype; all or none, in nats."""

    mean: float | None = Field(None, gt=0)
    q99: float | None = Field(None, gt=0)
    span_mean: float | None = Field(None, gt=0)


class AgreeRecipe(Knobs):
    """What ``journeyman tokens agree`` measures."""

    engine: EngineChoice
    trainer: TrainerChoice
    probe: ProbeSection = ProbeSection()
    limits: LimitsSection = LimitsSection()
    out: Path = Path("agreement.json")
    seed: int = Field(0, ge=0)


@dataclass(frozen=True)
class Outcome:
    """What was measured and what does not hold."""

    found: Agreement
    limits: Limits
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """Everything but the single spans, of which the worst is kept."""
        facts = asdict(self.found)
        facts["spans"] = len(self.found.spans)
        worst = self.found.worst_span(self.limits.span_tokens)
        facts["worst_span"] = asdict(worst) if worst else None
        reasons = [str(finding) for finding in self.findings]
        return {"passed": self.passed, "limits": asdict(self.limits), "findings": reasons, "agreement": _finite(facts)}


def agree(recipe: AgreeRecipe, say: Callable[[str], None]) -> Outcome:
    """Measure one deployment and write its record to ``recipe.out``.

    Raises:
        InputError: a model that cannot be opened. SystemFault: the engine broke or a deadline passed.
    """
    import torch

    from journeyman.train.backends.torch import TorchTrainer
    from journeyman.train.model import load_model

    say(f"opening {recipe.engine.model} ({recipe.engine.kind}, {recipe.engine.dtype})")
    trainer = TorchTrainer(load_model(recipe.trainer.model))
    engine = OPENERS[recipe.engine.kind or "embedded"](recipe)
    try:
        vocab = trainer.model.get_input_embeddings().weight.shape[0]
        plan = Plan(vocab=vocab, seed=recipe.seed, **recipe.probe.model_dump())
        generator = torch.Generator().manual_seed(recipe.seed)
        say(
            f"sampling {plan.trials} trials of {plan.turns} turns in {len(LEGS)} legs, with two pushes of moved weights"
        )
        samples = Probe(engine, trainer, lambda: move(trainer.model, generator), plan).run()
    finally:
        engine.close()
    outcome = judge(samples, limits_of(recipe))
    write_record(recipe.out, recipe.engine, recipe.trainer, passed=outcome.passed, facts=outcome.as_json())
    return outcome


def judge(samples: Any, limits: Limits) -> Outcome:
    """Figures and verdict of what a probe sampled."""
    found = agreement(samples, list(SOURCES), LEGS)
    return Outcome(found, limits, findings(found, limits))


def limits_of(recipe: AgreeRecipe) -> Limits:
    """The limits of the engine's dtype, or those of the recipe. Raises InputError for some but not all of them."""
    given = recipe.limits.model_dump(exclude_none=True)
    if not given:
        return LIMITS[recipe.engine.dtype]
    lacking = sorted(set(LimitsSection.model_fields) - set(given))
    if lacking:
        raise InputError("limits", f"without {', '.join(lacking)}", allowed="all of mean, q99, span_mean, or none")
    return Limits(**given)


def move(model: nn.Module, generator: Any, size: float = MOVE) -> None:
    """Change every weight by about ``size`` of itself, in place; tied tensors once."""
    import torch

    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(1 + size * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))


def open_local(recipe: AgreeRecipe) -> Engine:
    """The embedded engine over the engine's model directory, with room for every leg."""
    import torch

    from journeyman.engines.embedded import EmbeddedEngine
    from journeyman.engines.spec import locate, parse_model

    spec = parse_model(recipe.engine.model)
    if spec.kind == "service":
        problem = "returns text only: no token ids and no logprobs, so there is nothing to compare"
        raise InputError("engine.model", problem, hint="serve the weights with vLLM, or give a directory")
    probe = recipe.probe
    turns = probe.turns + 1
    length = probe.prompt_tokens + turns * (probe.append_tokens + probe.new_tokens)
    dtype = getattr(torch, recipe.engine.dtype)
    return EmbeddedEngine.from_directory(locate(spec), rows=3 * probe.trials, max_len=length, dtype=dtype)


def open_vllm(recipe: AgreeRecipe) -> Engine:
    """The vLLM servers of ``engine.model``: URLs with commas between. They serve the trainer's weights already.

    Raises:
        InputError: no URL. EnvironmentMissing: a server that does not answer or cannot generate from token ids.
        EngineError: one that takes no pushes; says how to start it.
    """
    from journeyman.engines.vllm import VllmEngine

    urls = recipe.engine.model.split(",")
    if not all(url.startswith(URLS) for url in urls):
        problem = f"{recipe.engine.model!r} is no address of a server"
        raise InputError("engine.model", problem, allowed="http://HOST:PORT, several with commas between")
    return VllmEngine(urls, dtype=recipe.engine.dtype, turn_s=recipe.probe.deadline_s)


OPENERS: dict[str, Callable[[AgreeRecipe], Engine]] = {"embedded": open_local, "vllm": open_vllm}
"""How the engine of each ``engine.kind`` is opened."""


def table(outcome: Outcome) -> list[str]:
    """Lines for people: the parts, then what does not hold."""
    found = outcome.found
    parts: dict[str, Figures] = {"all of one version": found.whole}
    if found.mixed.n:
        parts["mixed versions (not judged)"] = found.mixed
    for kind, figures in (("", found.by_leg), ("after ", found.by_source), ("version ", found.by_version)):
        parts |= {f"{kind}{name}": row for name, row in figures.items()}
    parts |= {f"position {name}": row for name, row in found.by_position.items()}
    lines = [f"{'tokens':<30} {'n':>7} {'mean':>9} {'99 %':>9} {'max':>9} {'k1':>10} {'k3':>9}"]
    for name, row in parts.items():
        lines.append(
            f"{name:<30} {row.n:>7} {row.mean:>9.2e} {row.q99:>9.2e} {row.max:>9.2e} {row.k1:>10.2e} {row.k3:>9.2e}"
        )
    return lines + [f"not held: {finding}" for finding in outcome.findings]


def _finite(value: Any) -> Any:
    """NaN as null: JSON has no word for it."""
    if isinstance(value, dict):
        return {str(key): _finite(below) for key, below in value.items()}
    if isinstance(value, float) and value != value:
        return None
    return value
