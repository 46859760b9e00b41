"""What `journeyman launch` prints: scripts a shell accepts, objects a cluster accepts, drained and started again."""

from __future__ import annotations

import shutil
import signal
import subprocess
import textwrap
import time

import pytest
import yaml

from journeyman.errors import InputError
from journeyman.train.launch.k8s import DRAINED
from journeyman.train.launch.spec import EngineSpec, KubernetesSpec, LaunchSpec, PoolSpec, SlurmSpec
from journeyman.train.launch.texts import TEXTS, launch_text
from journeyman.train.launch.yaml import dump

SPECS = {
    "one node": LaunchSpec(trainer=PoolSpec(nodes=1, gpus=0)),
    "several": LaunchSpec(
        name="office-rl",
        command="journeyman train rl 'my recipe.toml' --out runs/a",
        activate=". .venv/bin/activate",
        trainer=PoolSpec(nodes=4),
        engine=EngineSpec(nodes=12, command="vllm serve models/policy --port 8000"),
        env={"NOTE": 'it\'s "quoted" $HOME `x`'},
        secrets=("WANDB_API_KEY",),
        slurm=SlurmSpec(partition="gpu", account="lab", extra=("--exclusive",)),
        k8s=KubernetesSpec(priority_class="low", node_selector={"gpu": "h200"}),
    ),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_shell_reads_the_slurm_script_without_complaint(spec):
    text = launch_text("slurm", spec)
    done = subprocess.run(["bash", "-n"], input=text, text=True, capture_output=True, timeout=20, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    head = [line for line in text.splitlines() if line.startswith("#SBATCH")]
    assert any(line.endswith(f"--nodes={spec.trainer.nodes + spec.engine.nodes}") for line in head)
    assert f"#SBATCH --signal=B:TERM@{spec.drain_s}" in head
    assert "#SBATCH --requeue" in head


def test_what_a_user_wrote_is_never_run_by_the_shell_that_reads_it(tmp_path):
    text = launch_text("slurm", SPECS["several"])
    line = next(line for line in text.splitlines() if line.startswith("export NOTE="))
    done = subprocess.run(
        ["bash", "-c", f'{line}\nprintf %s "$NOTE"'], capture_output=True, text=True, timeout=20, check=True
    )
    assert done.stdout == SPECS["several"].env["NOTE"]


def run_part(text):
    """The last part of a script, without the cluster around it."""
    return text[text.index("DRAINED=") :]


@pytest.mark.parametrize("cluster", TEXTS)
def test_a_signal_reaches_the_run_which_ends_by_itself_and_is_started_again(cluster, tmp_path):
    program = tmp_path / "run.sh"
    program.write_text(
        textwrap.dedent(f"""\
        trap 'sleep 0.5; echo saved > {tmp_path}/saved; exit 0' TERM
        echo started > {tmp_path}/started
        while true; do sleep 0.1; done
        """)
    )
    (tmp_path / "scontrol").write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/requeued\n')
    (tmp_path / "scontrol").chmod(0o755)
    spec = LaunchSpec(command=f"bash {program}", trainer=PoolSpec(gpus=0), workdir=str(tmp_path))
    text = launch_text(cluster, spec)
    if cluster == "k8s":
        job = next(d for d in yaml.safe_load_all(text) if d["kind"] == "Job")
        text = job["spec"]["template"]["spec"]["containers"][0]["command"][2]
    script = f"PATH={tmp_path}:$PATH\nPIDS=()\nSLURM_JOB_ID=7\n{run_part(text)}"
    process = subprocess.Popen([shutil.which("bash"), "-c", script])
    until = time.monotonic() + 20
    while not (tmp_path / "started").exists() and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    code = process.wait(20)
    assert (tmp_path / "saved").read_text() == "saved\n"  # the shell waited for the run to finish
    if cluster == "slurm":
        assert code == 0
        assert (tmp_path / "requeued").read_text() == "requeue 7\n"
    else:
        assert code == DRAINED


@pytest.mark.parametrize("cluster", TEXTS)
def test_the_exit_code_of_a_run_that_ended_by_itself_is_the_jobs(cluster, tmp_path):
    text = launch_text(cluster, LaunchSpec(command="bash -c 'exit 3'", trainer=PoolSpec(gpus=0)))
    if cluster == "k8s":
        job = next(d for d in yaml.safe_load_all(text) if d["kind"] == "Job")
        text = job["spec"]["template"]["spec"]["containers"][0]["command"][2]
    done = subprocess.run(["bash", "-c", f"PIDS=()\n{run_part(text)}"], timeout=20, check=False)
    assert done.returncode == 3


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_kubernetes_objects_have_what_a_cluster_asks_for(spec):
    documents = list(yaml.safe_load_all(launch_text("k8s", spec)))
    kinds = [document["kind"] for document in documents]
    assert kinds == ["Service", "Job"] + (["Job"] if spec.engine.nodes else [])
    for document in documents:
        assert document["apiVersion"] in ("v1", "batch/v1")
        assert document["metadata"]["name"].startswith(spec.name)
    for job in documents[1:]:
        body, pool = job["spec"], spec.trainer if "trainer" in job["metadata"]["name"] else spec.engine
        assert body["completionMode"] == "Indexed"
        assert body["completions"] == body["parallelism"] == pool.nodes
        pod = body["template"]["spec"]
        assert pod["restartPolicy"] == "Never"
        assert pod["terminationGracePeriodSeconds"] == spec.drain_s
        assert pod["subdomain"] == documents[0]["metadata"]["name"]
        (container,) = pod["containers"]
        limits = container["resources"]["limits"]
        assert limits["cpu"] == str(pool.cpus)
        assert limits.get("nvidia.com/gpu") == (str(pool.gpus) if pool.gpus else None)
        script = container["command"][2]
        assert subprocess.run(["bash", "-n"], input=script, text=True, timeout=20, check=False).returncode == 0
        codes = [rule.get("onExitCodes", {}).get("values") for rule in body["podFailurePolicy"]["rules"]]
        assert [DRAINED] in codes
        assert {"name": "NOTE", "value": spec.env["NOTE"]} in container["env"] if spec.env else True
    if spec.secrets:
        assert all("WANDB" not in str(entry.get("value", "")) for entry in container["env"])


def test_ranks_are_started_by_the_cluster_only_where_there_are_several_nodes():
    for cluster in TEXTS:
        assert "group.rank" not in launch_text(cluster, SPECS["one node"])
        assert "group.rank" in launch_text(cluster, SPECS["several"])


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"trainer": PoolSpec(nodes=0)}, "trainer.nodes"),
        ({"engine": EngineSpec(nodes=2)}, "engine.command"),
        ({"engine": EngineSpec(command="vllm serve x")}, "engine.command"),
    ],
)
def test_a_job_that_could_not_start_is_refused(fields, word):
    with pytest.raises(InputError, match=word):
        launch_text("slurm", LaunchSpec(**fields))


def test_yaml_keeps_every_string_a_string():
    value = {
        "a": "yes",
        "b": "1e3",
        "c": ["no", 5, None, True, ""],
        "d": {"x: y": "#z"},
        "e": "one\ntwo\n",
        "f": [],
        "g": {},
    }
    assert yaml.safe_load(dump([value])) == value
    assert list(yaml.safe_load_all(dump([value, value]))) == [value, value]
