"""What a set of office tasks is like: diversity, feedback per length, and what worlds, tasks and templates cost."""

from __future__ import annotations

import ast
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from journeyman.errors import InputError
from journeyman.worlds.curriculum import bucket_of
from journeyman.worlds.dedupe import distinct_share
from journeyman.worlds.diversify import tokens_of
from journeyman.worlds.gates import GATES
from journeyman.worlds.gates.g12_ladder import RUNGS
from journeyman.worlds.template import Template

SHINGLE = 6
"""Tokens per shingle when the check code of templates is compared."""


def statistics_of(out: Path) -> dict[str, Any]:
    """Everything ``journeyman worlds stats`` prints, from the files of a build.

    Raises:
        InputError: no task lies there.
    """
    tasks = [_task(path) for path in sorted((out / "tasks").glob("*/*")) if (path / "tests/provenance.json").is_file()]
    if not tasks:
        raise InputError(
            str(out), "holds no office task", hint="make some: journeyman worlds build --tasks 20 --out DIR"
        )
    worlds = [json.loads(path.read_text()) for path in sorted((out / "progress").glob("*.json"))]
    calls = [task["calls"] for task in tasks if task["calls"] is not None]
    return {
        "tasks": len(tasks),
        "worlds": len(worlds),
        "diversity": _diversity(tasks),
        "traps": dict(sorted(Counter(trap for task in tasks for trap in task["traps"]).items())),
        "oracle_calls": {
            "median": statistics.median(calls) if calls else None,
            "share_of_100_or_more": round(sum(n >= 100 for n in calls) / len(calls), 4) if calls else None,
        },
        "feedback": _feedback(tasks),
        "ladder": _ladder(tasks),
        "world_files": _world_files(out),
        "gates": gate_rows(task["gates"] for task in tasks),
        "libreoffice": _legs(out),
        "refused": _refused(worlds),
        "cost": _cost(out, len(tasks)),
        "templates": template_costs(),
    }


def gate_rows(reports: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Gate -> tasks it looked at, deliverables it had graded, tasks it found something on."""
    rows: dict[str, dict[str, int]] = {}
    for gates in reports:
        for gate, facts in gates.items():
            row = rows.setdefault(gate, {"tasks": 0, "deliverables": 0, "failed": 0})
            row["tasks"] += facts["cases"] > 0
            row["deliverables"] += facts["cases"]
            row["failed"] += not facts["passed"]
    return {gate: rows[gate] for gate in GATES if gate in rows}


def template_costs(templates: Mapping[str, Template] | None = None) -> dict[str, dict[str, Any]]:
    """Template -> lines its author wrote, and the other template whose check code is most like its own."""
    from journeyman.worlds.templates import TEMPLATES, matrices

    chosen = TEMPLATES if templates is None else templates
    sources = {name: _source(template) for name, template in chosen.items()}
    common = functions_of(Path(str(matrices.__file__)).read_text(encoding="utf-8"))
    shingles = {name: check_shingles(text, common) for name, text in sources.items()}
    found = {}
    for name, text in sources.items():
        likes = {other: overlap(shingles[name], shingles[other]) for other in sources if other != name}
        nearest = max(likes, key=lambda other: likes[other], default="")
        lines = sum(bool(line.strip()) and not line.strip().startswith("#") for line in text.splitlines())
        found[name] = {"lines": lines, "nearest": nearest, "shared_check_code": round(likes.get(nearest, 0.0), 3)}
    return found


def check_shingles(source: str, common: Mapping[str, ast.FunctionDef] | None = None) -> set[tuple[str, ...]]:
    """Shingles of the code that makes a template's checks: every function whose name speaks of checks, and every common
    function that the template calls, as if it had been written there.

    Args:
        source: of the template's module.
        common: name -> function that templates share, see ``functions_of``.
    """
    tree = ast.parse(source)
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    functions = [one for one in functions_of(tree).values() if "check" in one.name or one.name.endswith("_table")]
    functions += [one for name, one in (common or {}).items() if name in called]
    found: set[tuple[str, ...]] = set()
    for function in functions:
        words = [type(one).__name__ + str(getattr(one, "id", getattr(one, "attr", getattr(one, "value", ""))))[:24]
                 for one in ast.walk(function) if not isinstance(one, ast.expr_context)]  # fmt: skip
        found |= {tuple(words[i : i + SHINGLE]) for i in range(max(0, len(words) - SHINGLE + 1))}
    return found


def functions_of(source: str | ast.AST) -> dict[str, ast.FunctionDef]:
    """Functions of a module by name."""
    tree = ast.parse(source) if isinstance(source, str) else source
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def overlap(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> float:
    """Part of the first that the second has as well."""
    return len(one & other) / len(one) if one else 0.0


def _source(template: Template) -> str:
    module = sys.modules[type(template).__module__]
    return Path(str(module.__file__)).read_text(encoding="utf-8")


def _task(path: Path) -> dict[str, Any]:
    origin = json.loads((path / "tests/provenance.json").read_text())
    gates = path / "tests/gates.json"
    report = json.loads(gates.read_text()) if gates.is_file() else {"gates": {}, "oracle_calls": None, "ladder": {}}
    instruction = (path / "instruction.md").read_text()
    return {**origin, "id": path.name, "gates": report["gates"], "calls": report["oracle_calls"],
            "ladder": report["ladder"], "instruction": instruction, "split": path.parent.name}  # fmt: skip


def _diversity(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "templates": dict(sorted(Counter(task["template"] for task in tasks).items())),
        "domains": dict(sorted(Counter(task["domain"] for task in tasks).items())),
        "splits": dict(sorted(Counter(task["split"] for task in tasks).items())),
        "industries": len({task["industry"] for task in tasks}),
        "styles": len({task["style"] for task in tasks}),
        "distinct_instructions": round(distinct_share(task["instruction"] for task in tasks), 4),
        "distinct_shapes": round(
            distinct_share([task["template"], task["traps"], task["knobs"], task["notes"]] for task in tasks), 4
        ),
    }


def _feedback(tasks: list[dict[str, Any]]) -> dict[str, Any]:
    """Checkable nodes per task by tool-call bucket."""
    nodes: dict[int, list[int]] = defaultdict(list)
    for task in tasks:
        if task["calls"] is not None:
            nodes[bucket_of(task["calls"])].append(sum(check["nodes"] for check in task["checks"]))
    return {
        str(bucket): {"tasks": len(counts), "median_nodes": statistics.median(counts), "least_nodes": min(counts)}
        for bucket, counts in sorted(nodes.items())
    }


def _ladder(tasks: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Mean reward per rung, by template and over all."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for task in tasks:
        if task["ladder"]:
            groups[task["template"]].append(task["ladder"])
            groups["all"].append(task["ladder"])
    return {
        name: {rung: round(statistics.fmean(one.get(rung) or 0.0 for one in members), 4) for rung in RUNGS}
        for name, members in sorted(groups.items())
    }


def _world_files(out: Path) -> dict[str, Any]:
    counts, formats = [], []
    for layer in sorted((out / "layers").iterdir()) if (out / "layers").is_dir() else []:
        paths = [path for path in (layer / "world").rglob("*") if path.is_file()]
        counts.append(len(paths))
        formats.append(len({path.suffix for path in paths}))
    return {"median_files": statistics.median(counts), "median_formats": statistics.median(formats)} if counts else {}


def _legs(out: Path) -> dict[str, int]:
    """Tasks of the sample for LibreOffice: drawn, run (where it is installed), failed."""
    legs = [leg for path in sorted((out / "legs").glob("*.json")) for leg in json.loads(path.read_text())]
    return {
        "drawn": len(legs),
        "ran": sum(leg["ran"] for leg in legs),
        "failed": sum(bool(leg["problem"]) for leg in legs),
    }


def _refused(worlds: list[dict[str, Any]]) -> dict[str, Any]:
    """Candidates that were passed over, by gate; and the share of all candidates."""
    by_gate: Counter[str] = Counter()
    for world in worlds:
        for why, count in world["refused"].items():
            reason = why.partition(": ")[2]
            head = reason.partition(":")[0]
            by_gate[head if head[:1] == "G" and head[1:].isdigit() else reason.partition(":")[0][:40]] += count
    kept = sum(len(world["tasks"]) for world in worlds)
    total = kept + sum(by_gate.values())
    return {"share": round(1 - kept / total, 4) if total else 0.0, "by_gate": dict(by_gate.most_common())}


def _cost(out: Path, tasks: int) -> dict[str, Any]:
    """CPU seconds of building and of the gates, apart; ``tasks`` are those that were published."""
    costs = [json.loads(path.read_text()) for path in sorted((out / "cost").glob("*.json"))]
    sums = {side: Counter[str]() for side in ("build", "gates")}
    for cost in costs:
        for side, found in sums.items():
            found.update({part: float(seconds) for part, seconds in cost.get(side, {}).items()})
    totals = {side: round(sum(found.values()), 1) for side, found in sums.items()}
    worlds = sums["build"]["worlds"]
    tokens = tokens_of(out / "wording")
    return {
        "cpu_s": totals,
        "build_cpu_s": {part: round(seconds, 2) for part, seconds in sorted(sums["build"].items())},
        "gates_cpu_s": {gate: round(sums["gates"][gate], 2) for gate in GATES if gate in sums["gates"]},
        "cpu_s_per_world": round(worlds / len(costs), 3) if costs else None,
        "cpu_s_per_task": {side: round(total / tasks, 3) for side, total in totals.items()} if tasks else None,
        "counted_by": ", ".join(sorted({str(cost.get("source", "")) for cost in costs})),
        "llm_tokens": tokens,
        "dollars": None if tokens else 0.0,  # whoever runs the model knows its price
    }
