"""Attacks on the grade, from an agent's sandbox to its verdict: act, QUIESCE, collect, grade in a fresh sandbox.

Each agent here does the worst it can with a shell. What wins nothing, reaches nothing and stays nowhere has held.
"""

from __future__ import annotations

import io
import json
import os
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, Sandbox
from journeyman.tasks.artifacts import read_artifacts
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.task import Task, TaskDraft, load_task, write_task
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier, verify_in_sandbox
from journeyman.trials.collect import collect_files
from journeyman.trials.quiesce import quiesce

CANARY = "canary-77d0a1f2c9"
CHECK = """
import json

class MalformedDeliverable(Exception):
    pass

def grade(artifacts, truth):
    try:
        answer = json.loads(artifacts["answer.json"])["answer"]
    except (KeyError, TypeError, ValueError) as error:
        raise MalformedDeliverable(repr(error)) from error
    return {"reward": float(answer == truth["answer"]), "passed": answer == truth["answer"], "checks": []}
"""
WRONG = 'mkdir -p /logs/artifacts; echo \'{"answer": "413"}\' >/logs/artifacts/answer.json'
RIGHT = WRONG.replace("413", "412")


@pytest.fixture
def make_task(tmp_path: Path) -> Callable[..., Task]:
    """A task whose answer is 412, and whose truth holds the canary; keyword arguments change files and deliverables."""

    def make(name: str = "task", deliverables: tuple[str, ...] | None = ("answer.json",), **files: str) -> Task:
        own = {"family": "look", "world_id": "w-1", "split": "train", "world_digest": "0" * 64}
        contents = {
            "environment/Dockerfile": "FROM debian:12\n",
            "environment/world/sales.csv": "client,Q1\nAcme,412\n",
            "solution/solve.sh": "true\n",
            "tests/test.sh": "exit 9\n",
            "tests/truth.json": json.dumps({"answer": "412", "canary": CANARY}),
            "tests/check.py": CHECK,
            **{f"tests/{file.replace('__', '.')}": text for file, text in files.items()},
        }
        declared = {"journeyman": {**own, "deliverables": list(deliverables)}} if deliverables is not None else {}
        config = {"metadata": declared}
        draft = TaskDraft("report Acme Q1\n", config, {path: text.encode() for path, text in contents.items() if text})
        return load_task(write_task(draft, tmp_path / "tasks" / name))

    return make


@pytest.fixture
def attack(
    open_bwrap: Callable[..., Sandbox], environment: AgentEnvironment, tmp_path: Path
) -> Iterator[Callable[[str], dict[str, bytes]]]:
    """Runs a shell line as the agent and returns its deliverables, as a trial would take them."""

    def act(line: str, task: Task | None = None) -> dict[str, bytes]:
        (tmp_path / "world").mkdir(exist_ok=True)
        world = task.path / "environment" / "world" if task is not None else tmp_path / "world"
        mounts = (Mount(world, "/ws", overlay=True),)
        sandbox = open_bwrap(environment=environment, mounts=(*mounts, *logs(tmp_path)))
        act.said = sandbox.exec(line, deadline_s=20).stdout.decode(errors="replace")  # type: ignore[attr-defined]
        quiesce(sandbox, 10)
        found = collect_files(sandbox, "/logs", 20, 10)
        sandbox.destroy()
        return found

    yield act


def logs(tmp_path: Path) -> tuple[Mount, ...]:
    """A place of the agent's own for ``/logs``: no directory of a verifier is below it."""
    place = tmp_path / f"logs-{len(list(tmp_path.glob('logs-*')))}"
    place.mkdir()
    return (Mount(place, "/logs", writable=True),)


def graded(provider: Provider, environment: AgentEnvironment, label: str, *items: tuple[Task, Any]) -> list[Verdict]:
    with BatchVerifier(provider, environment, label) as verifier:
        return verifier.grade([GradeItem(str(n), task, artifacts) for n, (task, artifacts) in enumerate(items)])


def test_the_honest_answer_is_worth_one_and_a_wrong_one_nothing(
    attack: Any, make_task: Any, bwrap: Provider, environment: AgentEnvironment, label: str
) -> None:
    task = make_task()
    right, wrong = graded(bwrap, environment, label, (task, attack(RIGHT)), (task, attack(WRONG)))
    assert (right.reward, wrong.reward) == (1.0, 0.0)


def test_a_reward_planted_wherever_one_could_be_read_wins_nothing(
    attack: Any, make_task: Any, bwrap: Provider, environment: AgentEnvironment, label: str
) -> None:
    plant = "for d in /logs /logs/verifier /logs/artifacts /logs/artifacts/verifier /ws /tmp; do mkdir -p $d;"
    plant += " echo 1 >$d/reward.txt; echo '{\"reward\": 1}' >$d/reward.json; done"
    (verdict,) = graded(bwrap, environment, label, (make_task(), attack(f"{WRONG}; {plant}")))
    assert (verdict.kind, verdict.reward) == ("scored", 0.0)
    (nothing,) = graded(bwrap, environment, label, (make_task(), attack(plant)))
    assert (nothing.kind, nothing.reward) == ("malformed_deliverable", 0.0)


def test_a_writer_in_the_background_is_dead_before_the_deliverables_are_read(
    attack: Any, make_task: Any, bwrap: Provider, environment: AgentEnvironment, label: str, tmp_path: Path
) -> None:
    writer = 'while :; do echo \'{"answer": "412"}\' >/logs/artifacts/late.json; echo 1 >/logs/reward.txt; done'
    found = attack(f'{WRONG}; setsid sh -c "{writer}" >/dev/null 2>&1 & (trap "" TERM; {writer}) & sleep 0.2; {WRONG}')
    late = list(tmp_path.glob("logs-*/artifacts/late.json"))
    assert late, "the writer never ran"
    before = late[0].stat().st_mtime_ns
    time.sleep(0.3)
    assert late[0].stat().st_mtime_ns == before
    (verdict,) = graded(bwrap, environment, label, (make_task(), found))
    assert verdict.reward == 0.0


def test_links_fifos_and_devices_as_deliverables_are_not_followed(
    attack: Any, make_task: Any, bwrap: Provider, environment: AgentEnvironment, label: str, tmp_path: Path
) -> None:
    secret = tmp_path / "host-secret"
    secret.write_text(json.dumps({"answer": "412"}))
    line = f"mkdir -p /logs/artifacts; cd /logs/artifacts; ln -s {secret} answer.json; ln -s / root; mkfifo pipe;"
    found = attack(line + " ln -s /proc/self/environ env; ln -s ../.. up; echo own >plain")
    assert found == {"plain": b"own\n"}
    (verdict,) = graded(bwrap, environment, label, (make_task(), found))
    assert (verdict.kind, verdict.reward) == ("malformed_deliverable", 0.0)
    (planted,) = [path for path in tmp_path.glob("logs-*/artifacts") if (path / "plain").exists()]
    assert (planted / "answer.json").is_symlink()
    assert read_artifacts(planted) == {"plain": b"own\n"}  # neither where the host reads a directory itself


def test_a_linked_directory_of_deliverables_is_not_entered(attack: Any) -> None:
    assert attack("mkdir -p /logs; ln -s /etc /logs/artifacts") == {}


def bomb(size_mb: int) -> bytes:
    """A workbook-like archive of some KiB whose one member unfolds to ``size_mb`` MiB."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("xl/sheet1.xml", "w") as member:
        for _ in range(size_mb):
            member.write(b"\0" * (1 << 20))
    return data.getvalue()


def resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def test_a_zip_bomb_ends_the_check_that_unfolds_it_and_nothing_else(
    make_task: Any, bwrap: Provider, environment: AgentEnvironment, label: str
) -> None:
    unfold = "import io, zipfile\ndef grade(a, t):\n    z = zipfile.ZipFile(io.BytesIO(a['book.xlsx']))\n"
    unfold += "    return {'reward': float(len(z.read('xl/sheet1.xml')) >= 0)}"
    naive = make_task("naive", deliverables=("book.xlsx",), check__py=unfold)
    before = resident_mb()
    bombed, good = graded(
        bwrap,
        environment,
        label,
        (naive, {"book.xlsx": bomb(400)}),
        (make_task(), {"answer.json": b'{"answer": "412"}'}),
    )
    assert (bombed.kind, bombed.error, bombed.reward) == ("verifier_error", "VerifierKilled", None)
    assert good.reward == 1.0
    assert resident_mb() - before < 60


@pytest.fixture(scope="module")
def with_pytest(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    return build_environment(tmp_path_factory.mktemp("environments"), distributions=["pytest"])


PYTEST = (
    "import json\ndef test_answer():\n    assert json.load(open('/logs/artifacts/answer.json'))['answer'] == '412'\n"
)
CONFTEST = "import os\nos._exit(0)\n"
PLANTS = {
    "conftest.py": CONFTEST,
    "sitecustomize.py": CONFTEST,
    "usercustomize.py": CONFTEST,
    "pytest.py": CONFTEST,
    "json.py": CONFTEST,
    "evil.py": CONFTEST,
    "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
    "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
    "pytest.ini": "[pytest]\naddopts = -p evil\npythonpath = .\n",
}
"""What an agent can leave among its deliverables: each alone would end the verifier's pytest with status 0."""
RUN = "cd /logs/artifacts; python3 -m pytest -q {words} >&2\n"
RUN += 'echo "{{\\"reward\\": $([ $? -eq 0 ] && echo 1 || echo 0)}}" >/logs/verifier/reward.json\n'
WORDS = ("/tests/test_answer.py /logs/artifacts", "-p no:cacheprovider /logs/artifacts /tests", "/tests/test_answer.py")


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("declares", [True, False], ids=["declared", "imported"])
def test_nothing_planted_for_pytest_turns_a_failure_into_a_pass(
    attack: Any, make_task: Any, bwrap: Provider, with_pytest: AgentEnvironment, label: str, words: str, declares: bool
) -> None:
    fields = {"check__py": "", "test_answer__py": PYTEST, "test__sh": RUN.format(words=words)}
    lines = [f"mkdir -p $(dirname '{name}'); cat >'{name}' <<'E'\n{text}E" for name, text in PLANTS.items()]
    found = attack(f"{WRONG}\ncd /logs/artifacts\n" + "\n".join(lines))
    assert set(PLANTS) <= found.keys()
    task = make_task(**fields) if declares else make_task("imported", deliverables=None, **fields)
    verdict = verify_in_sandbox(task, found, bwrap, with_pytest, label=label)
    assert (verdict.kind, verdict.reward) == ("scored", 0.0), verdict
    honest = verify_in_sandbox(task, attack(RIGHT), bwrap, with_pytest, label=label)
    assert honest.reward == 1.0, honest


def test_without_the_guard_each_plant_would_win(
    attack: Any, make_task: Any, bwrap: Provider, with_pytest: AgentEnvironment, label: str
) -> None:
    """The control: the same script takes the guard off the path first."""
    unguarded = "unset PYTHONSAFEPATH VERIFIER_UNTRUSTED; export PYTHONPATH=/opt/agent/lib PYTEST_ADDOPTS=\n"
    fields = {"check__py": "", "test_answer__py": PYTEST, "test__sh": unguarded + RUN.format(words=WORDS[0])}
    task = make_task("imported", deliverables=None, **fields)
    for name in ("conftest.py", "pytest.py", "json.py", "pytest.ini", "evil-1.dist-info/entry_points.txt"):
        planted = {**attack(WRONG), **{n: PLANTS[n].encode() for n in (name, "evil.py")}}
        planted |= {n: t.encode() for n, t in PLANTS.items() if n.startswith("evil-1") and name.startswith("evil-1")}
        assert verify_in_sandbox(task, planted, bwrap, with_pytest, label=label).reward == 1.0, name


def test_a_verifier_still_imports_what_was_delivered_its_own_modules_and_its_own_conftest(
    attack: Any, make_task: Any, bwrap: Provider, with_pytest: AgentEnvironment, label: str
) -> None:
    own = "import helper, pytest\n@pytest.fixture\ndef wanted():\n    return helper.WANTED\n"
    test = "import solution\ndef test_it(wanted):\n    assert solution.answer() == wanted\n"
    script = "cd /logs/artifacts; python3 /tests/look.py && python3 -m pytest -q /tests >&2\n"
    script += 'echo "{\\"reward\\": $([ $? -eq 0 ] && echo 1 || echo 0)}" >/logs/verifier/reward.json\n'
    fields = {"check__py": "", "conftest__py": own, "helper__py": "WANTED = 412\n", "test_it__py": test}
    fields |= {"look__py": "import helper, solution\nassert solution.answer() == helper.WANTED\n", "test__sh": script}
    task = make_task("imported", deliverables=None, **fields)
    write = "cd /logs/artifacts; echo 'def answer():\n    return {value}' >solution.py; echo 'WANTED = 1' >helper.py"
    for value, reward in ((412, 1.0), (1, 0.0)):
        found = attack(f"{RIGHT}\n" + write.format(value=value))
        verdict = verify_in_sandbox(task, found, bwrap, with_pytest, label=label)
        assert (verdict.kind, verdict.reward) == ("scored", reward), verdict
