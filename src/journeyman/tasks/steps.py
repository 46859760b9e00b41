"""Tasks of several steps: instructions that follow each other in one environment, each with its own verifier.

Each step becomes a ``Task`` of its own, with the agent and verifier tables that hold for it, so whatever runs and
grades a task runs and grades a step. What makes one reward of the steps' verdicts is here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from journeyman.errors import InputError, Problem
from journeyman.tasks.task import Task, TaskDirectoryError, load_task, task_of
from journeyman.tasks.task_parts import leaving_links, prior_context, read_config, read_instruction, verifier_script
from journeyman.tasks.task_sections import Agent, Verifier
from journeyman.tasks.task_toml import Step, TaskToml
from journeyman.tasks.verdict import Verdict, scored


@dataclass(frozen=True)
class SteppedTask:
    """A task directory with ``[[steps]]``.

    Attributes:
        path: the directory.
        steps: one task per step, in order; ``Task.step`` names it.
        thresholds: ``min_reward`` per step, as rewards by name; empty for none.
        strategy: what the reward of the whole is: the ``mean`` over the steps that ran, or the ``final`` step's.
        config: the whole ``task.toml``.
        warnings: one line per unknown key.
    """

    path: Path
    steps: tuple[Task, ...]
    thresholds: tuple[Mapping[str, float], ...]
    strategy: Literal["mean", "final"]
    config: TaskToml
    warnings: tuple[str, ...] = ()


def load_any(directory: Path) -> Task | SteppedTask:
    """A task directory of one step or of several. Raises as ``load_task``."""
    config, _, _ = read_config(Path(directory) / "task.toml", [])
    return load_steps(directory) if config is not None and config.steps else load_task(directory)


def load_steps(directory: Path) -> SteppedTask:
    """Read a task directory of several steps.

    Raises:
        TaskDirectoryError: every problem at once; among them a step without instruction or without a verifier, its own
            or the task's.
        InputError: there is no such directory.
    """
    directory = Path(directory)
    if not directory.is_dir():
        raise InputError(str(directory), "is not a directory", allowed="a Harbor task directory with task.toml")
    problems: list[Problem] = []
    config, raw, warnings = read_config(directory / "task.toml", problems)
    if config is not None and not config.steps:
        problems.append(Problem("steps", "task.toml", "has no [[steps]]; allowed: at least one"))
    texts: dict[str, str] = {}
    for step in config.steps if config is not None else ():
        name = f"steps/{step.name}/instruction.md"
        texts[step.name] = read_instruction(directory / name, problems, name)
        prior = f"steps/{step.name}/trajectory.json"
        prior_context(directory / prior, problems, prior)
        verifiers = [verifier_script(place, config) for place in (directory / "steps" / step.name, directory)]
        if not any(path.is_file() for path in verifiers):
            problems.append(
                Problem("verifier", f"steps/{step.name}/tests/test.sh", "no verifier: this file is missing")
            )
    problems.extend(leaving_links(directory))
    if problems or config is None:
        raise TaskDirectoryError(directory, problems)
    tasks = (task_of(directory, _config_of(config, s), raw, texts[s.name], step=s.name) for s in config.steps)
    return SteppedTask(
        path=directory,
        steps=tuple(tasks),
        thresholds=tuple(_thresholds(step) for step in config.steps),
        strategy=config.multi_step_reward_strategy,
        config=config,
        warnings=warnings,
    )


def _config_of(config: TaskToml, step: Step) -> TaskToml:
    """``task.toml`` as it holds for one step: what the step leaves out is the task's."""
    agent = Agent.model_validate({**config.agent.model_dump(exclude_unset=True), **_said(step.agent)})
    whole = config.verifier.model_dump(exclude_unset=True, exclude={"timeout_sec", "collect"})
    env = {**config.verifier.env, **step.verifier.env}
    collect = [hook.model_dump() for hook in (*config.verifier.collect, *step.verifier.collect)]
    own = {**whole, **_said(step.verifier), "env": env, "collect": collect}
    own["environment_mode"] = config.verifier_mode(step)
    if own["environment_mode"] == "shared":
        own.pop("environment", None)
    changes = {
        "agent": agent,
        "verifier": Verifier.model_validate(own),
        "artifacts": (*config.artifacts, *step.artifacts),
        "steps": (),
    }
    return config.model_copy(update=changes)


def _said(section: Agent | Verifier) -> dict[str, object]:
    return section.model_dump(exclude_unset=True)


def _thresholds(step: Step) -> Mapping[str, float]:
    if step.min_reward is None:
        return {}
    return step.min_reward if isinstance(step.min_reward, dict) else {"reward": step.min_reward}


def ends_after(thresholds: Mapping[str, float], rewards: Mapping[str, float]) -> str | None:
    """Why the steps that follow are not run, or None: a reward is below its threshold, or missing."""
    for name, least in thresholds.items():
        found = rewards.get(name)
        if found is None or found < least:
            return f"{name} is {'missing' if found is None else f'{found:g}'}, below min_reward {least:g}"
    return None


def verdict_of_steps(verdicts: Sequence[Verdict], strategy: Literal["mean", "final"]) -> Verdict:
    """The verdict of the whole from those of the steps that ran.

    A verifier error in any step that counts is one of the whole: Harbor leaves such steps out of the mean, which turns
    a broken verifier into a better reward. ``passed`` needs all of them.

    Raises:
        ValueError: no step ran.
    """
    if not verdicts:
        raise ValueError("no step ran")
    if strategy == "final":
        return verdicts[-1]
    for verdict in verdicts:
        if verdict.kind == "verifier_error":
            return verdict
    if len(verdicts) == 1:
        return verdicts[0]
    rewards = [verdict.reward or 0.0 for verdict in verdicts]
    checks = [check for verdict in verdicts for check in verdict.to_dict()["checks"]]
    return scored(sum(rewards) / len(rewards), all(verdict.passed for verdict in verdicts), checks)
