"""Kubernetes objects: an indexed Job for trainer nodes and run, one for engines, a headless Service for their names.

Pod 0 of the trainer Job holds the run. At pre-emption or eviction a pod gets SIGTERM and ``drain_s`` to end; its shell
passes the signal to the run and then ends with code 75, so that the Job counts the pod as not finished and starts it
again, where the run continues. Disruptions are not counted as failures.
"""

from __future__ import annotations

from typing import Any

from journeyman.train.launch.spec import PORT, LaunchSpec, PoolSpec
from journeyman.train.launch.yaml import dump

DRAINED = 75
"""Exit code of a pod that was told to go: the Job starts another in its place (EX_TEMPFAIL)."""


def k8s_objects(spec: LaunchSpec) -> str:
    """YAML documents, for ``kubectl apply -f -``."""
    documents = [_service(spec), _job(spec, f"{spec.name}-trainer", spec.trainer, _trainer_script(spec))]
    if spec.engine.nodes:
        documents.append(_job(spec, f"{spec.name}-engine", spec.engine, _engine_script(spec)))
    return dump(documents)


def _service(spec: LaunchSpec) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(spec, spec.name),
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": spec.name}},
    }


def _job(spec: LaunchSpec, name: str, pool: PoolSpec, script: str) -> dict[str, Any]:
    rules = [
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [DRAINED]}},
    ]
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(spec, name),
        "spec": {
            "completionMode": "Indexed",
            "completions": max(pool.nodes, 1),
            "parallelism": max(pool.nodes, 1),
            "backoffLimit": spec.restarts,
            "activeDeadlineSeconds": round(spec.hours * 3600),
            "podFailurePolicy": {"rules": rules},
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": {"app": spec.name, "part": name}}, "spec": _pod(spec, pool, script)},
        },
    }


def _pod(spec: LaunchSpec, pool: PoolSpec, script: str) -> dict[str, Any]:
    k8s = spec.k8s
    amounts: dict[str, Any] = {"cpu": str(pool.cpus), "memory": f"{pool.memory_gb}Gi"}
    if pool.gpus:
        amounts[k8s.gpu_resource] = str(pool.gpus)
    shared = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{max(1, pool.memory_gb // 2)}Gi"}}
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "subdomain": spec.name,
        "terminationGracePeriodSeconds": spec.drain_s,
        "containers": [
            {
                "name": "main",
                "image": k8s.image,
                "command": ["/bin/bash", "-c", script],
                "workingDir": k8s.mount,
                "env": _environment(spec),
                "resources": {"limits": amounts, "requests": dict(amounts)},
                "volumeMounts": [{"name": "data", "mountPath": k8s.mount}, {"name": "shm", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": k8s.claim}}, shared],
    }
    if k8s.priority_class:
        pod["priorityClassName"] = k8s.priority_class
    if k8s.node_selector:
        pod["nodeSelector"] = dict(k8s.node_selector)
    return pod


def _environment(spec: LaunchSpec) -> list[dict[str, Any]]:
    names = list(spec.secrets)
    if spec.attaches:
        names.append("TRAINER_GROUP_TOKEN")
    secrets = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": f"{spec.name}-secrets", "key": name}}} for name in names
    ]
    return [{"name": name, "value": value} for name, value in spec.env.items()] + secrets


def _trainer_script(spec: LaunchSpec) -> str:
    head = f"{spec.name}-trainer-0.{spec.name}"
    lines = [*_opening(spec), f'export HEAD={head} JOB_ID="{spec.name}"']
    if spec.engine.nodes:
        urls = ",".join(
            f"http://{spec.name}-engine-{i}.{spec.name}:{spec.engine.port}" for i in range(spec.engine.nodes)
        )
        lines.append(f"export ENGINE_URLS={urls}")
    if spec.attaches:
        lines += [
            f"export TRAINER_GROUP_ADDRESS=tcp:$HEAD:{PORT} TRAINER_GROUP_HOST=0.0.0.0 TRAINER_GROUP_PORT={PORT}",
            f'if [ "$JOB_COMPLETION_INDEX" != 0 ]; then exec {spec.rank_words}; fi',
            f"{spec.rank_words} &",
        ]
    return "\n".join([*lines, *_watched(spec.run_words)]) + "\n"


def _engine_script(spec: LaunchSpec) -> str:
    return "\n".join([*_opening(spec), *_watched(spec.engine.command)]) + "\n"


def _opening(spec: LaunchSpec) -> list[str]:
    lines = ["set -u", f"cd {_quoted(spec.workdir)}"]
    return [*lines, spec.activate] if spec.activate else lines


def _watched(command: str) -> list[str]:
    return [
        "DRAINED=",
        f"{command} &",
        "RUN=$!",
        "trap 'DRAINED=1; kill -TERM \"$RUN\" 2>/dev/null' TERM",
        'wait "$RUN"; CODE=$?',
        'while kill -0 "$RUN" 2>/dev/null; do wait "$RUN"; CODE=$?; done',
        f'if [ -n "$DRAINED" ]; then exit {DRAINED}; fi',
        'exit "$CODE"',
    ]


def _metadata(spec: LaunchSpec, name: str) -> dict[str, Any]:
    return {"name": name, "namespace": spec.k8s.namespace, "labels": {"app": spec.name}}


def _quoted(word: str) -> str:
    import shlex

    return shlex.quote(word)
