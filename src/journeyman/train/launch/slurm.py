"""A Slurm batch script: engines, trainer ranks and the run as three kinds of steps of one job.

Slurm sends SIGTERM to the batch shell ``drain_s`` before the limit and at pre-emption. The shell passes it to the run
alone, which ends its step and writes a checkpoint, and then asks Slurm to queue the job again.
"""

from __future__ import annotations

import shlex

from journeyman.train.launch.spec import PORT, LaunchSpec


def slurm_script(spec: LaunchSpec) -> str:
    """The script, for ``sbatch``."""
    parts = [_head(spec), _set_up(spec), _engines(spec), _ranks(spec), _run(spec)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _head(spec: LaunchSpec) -> str:
    nodes = spec.trainer.nodes + spec.engine.nodes
    gpus, cpus = max(spec.trainer.gpus, spec.engine.gpus if spec.engine.nodes else 0), spec.trainer.cpus
    options = [
        f"--job-name={spec.name}",
        f"--nodes={max(nodes, 1)}",
        "--ntasks-per-node=1",
        f"--cpus-per-task={cpus}",
        f"--mem={spec.trainer.memory_gb}G",
        f"--time={_clock(spec.hours)}",
        f"--signal=B:TERM@{spec.drain_s}",
        "--requeue",
        "--open-mode=append",
        f"--output={spec.name}-%j.log",
    ]
    options += [f"--gpus-per-node={gpus}"] if gpus else []
    options += [f"--partition={spec.slurm.partition}"] if spec.slurm.partition else []
    options += [f"--account={spec.slurm.account}"] if spec.slurm.account else []
    lines = [f"#SBATCH {shlex.join([option])}" for option in (*options, *spec.slurm.extra)]
    return "\n".join(["#!/bin/bash", *lines])


def _set_up(spec: LaunchSpec) -> str:
    lines = ["set -u -o pipefail", f"cd {shlex.quote(spec.workdir)} || exit 1"]
    lines += [spec.activate] if spec.activate else []
    lines += [f"export {name}={shlex.quote(value)}" for name, value in spec.env.items()]
    lines += [f': "${{{name}:?set {name} before sbatch}}"; export {name}' for name in spec.secrets]
    lines += [
        'mapfile -t NODES < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
        'export HEAD="${NODES[0]}" JOB_ID="$SLURM_JOB_ID"',
        f"if [ \"${{SLURM_RESTART_COUNT:-0}}\" -gt {spec.restarts} ]; then echo 'too many restarts' >&2; exit 1; fi",
        "PIDS=()",
    ]
    return "\n".join(lines)


def _engines(spec: LaunchSpec) -> str:
    if not spec.engine.nodes:
        return ""
    first = spec.trainer.nodes
    words = shlex.quote(spec.engine.command)
    return "\n".join(
        [
            "ENGINES=()",
            f'for NODE in "${{NODES[@]:{first}:{spec.engine.nodes}}}"; do',
            f'  srun --nodes=1 --ntasks=1 --nodelist="$NODE" --kill-on-bad-exit=0 bash -c {words} &',
            "  PIDS+=($!)",
            f'  ENGINES+=("http://$NODE:{spec.engine.port}")',
            "done",
            'export ENGINE_URLS=$(IFS=,; echo "${ENGINES[*]}")',
            'for URL in "${ENGINES[@]}"; do',
            '  for _ in $(seq 600); do curl -fs -m 5 "$URL/health" >/dev/null && break; sleep 2; done',
            "done",
        ]
    )


def _ranks(spec: LaunchSpec) -> str:
    if not spec.attaches:
        return ""
    nodes = spec.trainer.nodes
    return "\n".join(
        [
            "export TRAINER_GROUP_TOKEN=$(head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \\n')",
            f'export TRAINER_GROUP_HOST="$HEAD" TRAINER_GROUP_PORT={PORT}',
            f'export TRAINER_GROUP_ADDRESS="tcp:$HEAD:{PORT}"',
            f'TRAINERS=$(IFS=,; echo "${{NODES[*]:0:{nodes}}}")',
            f'srun --nodes={nodes} --ntasks-per-node=1 --nodelist="$TRAINERS" --overlap \\',
            f"  {spec.rank_words} &",
            "PIDS+=($!)",
        ]
    )


def _run(spec: LaunchSpec) -> str:
    return "\n".join(
        [
            "DRAINED=",
            f"{spec.run_words} &",
            "RUN=$!",
            "trap 'DRAINED=1; kill -TERM \"$RUN\" 2>/dev/null' TERM",
            'wait "$RUN"; CODE=$?',
            'while kill -0 "$RUN" 2>/dev/null; do wait "$RUN"; CODE=$?; done  # the first wait ends with the signal',
            'for PID in "${PIDS[@]:-}"; do [ -n "$PID" ] && kill "$PID" 2>/dev/null; done',
            'if [ -n "$DRAINED" ]; then scontrol requeue "$SLURM_JOB_ID"; exit 0; fi',
            'exit "$CODE"',
        ]
    )


def _clock(hours: float) -> str:
    minutes = max(1, round(hours * 60))
    return f"{minutes // 60:02d}:{minutes % 60:02d}:00"
