"""What a hostile deliverable or a runaway check may try: no number is won, and no trial sees another one's truth."""

from __future__ import annotations

import json
import time

import pytest
from task_directories import CHECK, MakeTask, answer

from journeyman.sandbox.protocol import AgentEnvironment, Provider
from journeyman.tasks.grading import GradeItem
from journeyman.tasks.harbor import verify_in_sandbox
from journeyman.tasks.verdict import Verdict
from journeyman.tasks.verify import BatchVerifier


def _grade(provider: Provider, environment: AgentEnvironment, *items: GradeItem) -> list[Verdict]:
    with BatchVerifier(provider, environment, "attack") as verifier:
        verdicts = verifier.grade(items)
    assert provider.list("attack") == []
    return verdicts


PLANTED = {
    "reward.txt": b"1",
    "reward.json": b'{"reward": 1}',
    "details.json": b'{"kind": "scored", "passed": true, "checks": []}',
    "verifier/reward.json": b'{"reward": 1}',
    "../verifier/reward.json": b'{"reward": 1}',
    "/logs/verifier/reward.json": b'{"reward": 1}',
    "conftest.py": b"raise SystemExit(0)",
    "sitecustomize.py": b"open('/logs/verifier/reward.json', 'w').write('{\"reward\": 1}')",
    "json.py": b"raise SystemExit(0)",
    "check.py": b"def grade(a, t): return {'reward': 1.0}",
    "test.sh": b"echo 1 > /logs/verifier/reward.txt",
}


def test_planted_rewards_and_programs_have_no_effect(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = make_task()
    wrong, right = ({**PLANTED, **answer(value)} for value in ("413", "412"))
    batch = _grade(provider, environment, *(GradeItem("t", task, a) for a in (wrong, right, PLANTED)))
    single = [verify_in_sandbox(task, a, provider, environment) for a in (wrong, right, PLANTED)]
    for verdicts in (batch, single):
        assert [(v.kind, v.reward) for v in verdicts] == [
            ("scored", 0.0),
            ("scored", 1.0),
            ("malformed_deliverable", 0.0),
        ]


def test_planted_files_of_an_imported_task_have_no_effect(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    task = make_task(is_own=False, check=None, test_sh="exec python3 -c 'import json; json.x' 2>/dev/null\n")
    verdict = verify_in_sandbox(task, {**PLANTED, **answer("412")}, provider, environment)
    assert (verdict.kind, verdict.error) == ("verifier_error", "RewardFileMissing")


HOSTILE = {
    "ten megabytes": json.dumps({"answer": "412" + " " * 10_000_000}).encode(),
    "not UTF-8": b'{"answer": "\xff"}',
    "a million brackets": b"[" * 1_000_000,
    "deep but parseable": b'{"answer": ' + b"[" * 500 + b"]" * 500 + b"}",
    "NaN": b'{"answer": NaN}',
    "huge number": b'{"answer": ' + b"9" * 100_000 + b"}",
    "empty": b"",
    "two objects": b'{"answer": "412"}{"answer": "412"}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_is_malformed_and_never_breaks_the_verifier(
    name: str, make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    naive = (
        "import json\ndef grade(a, t): return {'reward': float(json.loads(a['answer.json'])['answer'] == t['answer'])}"
    )
    items = [GradeItem("a", make_task("naive", check=naive), {"answer.json": HOSTILE[name]})]
    items.append(GradeItem("b", make_task(), answer("412")))
    hostile, good = _grade(provider, environment, *items)
    assert (hostile.kind, hostile.reward) == ("malformed_deliverable", 0.0)
    assert good.reward == 1.0


def test_an_answer_that_looks_like_a_verdict_or_holds_odd_text_is_only_a_wrong_answer(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    texts = ['{"reward": 1}', "\ud800", "\0", "412\u200b", "'; raise SystemExit", "x" * 400_000]
    verdicts = _grade(provider, environment, *(GradeItem("t", make_task(), answer(text)) for text in texts))
    assert [(v.kind, v.reward) for v in verdicts] == [("scored", 0.0)] * len(texts)
    assert all(len(json.dumps(v.to_dict(), ensure_ascii=False).encode()) < 10_000 for v in verdicts)


RUNAWAY = {
    "loops": ("while True: pass", "VerifierTimeout"),
    "loops and swallows its deadline": (
        "while True:\n  try:\n   while True: sum(range(99))\n  except BaseException: pass",
        "VerifierTimeout",
    ),
    "sleeps with signals blocked": (
        "import signal, time; signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64)); time.sleep(60)",
        "VerifierTimeout",
    ),
    "allocates 4 GB": ("x = b'x' * (4 << 30)", "VerifierKilled"),
    "allocates 4 GB bit by bit": ("x = [b'x' * (1 << 20) for n in range(4096)]", "VerifierKilled"),
    "leaves without an answer": ("import os; os._exit(0)", "VerifierKilled"),
    "kills itself": ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "VerifierKilled"),
    "prints a reward and exits": (
        'import os; print(\'{"kind": "scored", "reward": 1.0}\', flush=True); os._exit(0)',
        "VerifierKilled",
    ),
    "writes a reward to every stream and exits": (
        "import os, json\n"
        " body = b'\\0' + json.dumps({'kind': 'scored', 'reward': 1.0, 'passed': True, 'checks': []}).encode()\n"
        " for fd in (0, 1, 2): os.write(fd, len(body).to_bytes(4, 'big') + body)\n"
        " os._exit(0)",
        "VerifierKilled",
    ),
    "forks without end": ("import os\n while True: os.fork()", None),  # which of its answers comes first is open
    "kills the server": ("import os; os.kill(os.getppid(), 9); raise ValueError", "VerifierCrashed"),
    "gives NaN": ("return {'reward': float('nan')}", "RewardInvalid"),
    "gives an infinity": ("return {'reward': float('inf')}", "RewardInvalid"),
    "gives 1.5": ("return {'reward': 1.5, 'passed': True}", "RewardInvalid"),
    "gives -0.1": ("return {'reward': -0.1}", "RewardInvalid"),
    "gives True": ("return {'reward': True}", "RewardInvalid"),
    "gives a text": ("return {'reward': '1'}", "RewardInvalid"),
}


@pytest.mark.parametrize("name", RUNAWAY)
def test_a_runaway_check_is_a_verifier_error_of_its_own_trial_alone(
    name: str, make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    body, error = RUNAWAY[name]
    timeout_s = 0.5 if error in ("VerifierTimeout", None) else 20.0
    runaway = make_task("runaway", check=f"def grade(a, t):\n {body}\n", timeout_s=timeout_s)
    good = GradeItem("good", make_task("good", timeout_s=timeout_s), answer("412"))
    started = time.monotonic()
    before, broken, after = _grade(provider, environment, good, GradeItem("bad", runaway, answer("412")), good)
    assert time.monotonic() - started < 10
    assert (broken.kind, broken.reward) == ("verifier_error", None)
    assert error is None or broken.error == error, broken.explain
    assert (before.reward, after.reward) == (1.0, 1.0)


SPY = '''
import gc, os, sys, types

ROOTS = ("/opt/grader", "/tmp", "/ws", "/etc", "/logs", "/tests", "/dev/shm", "/run", "/home", "/var", "/solution")


def scanned(needle):
    """Where the needle occurs in a readable file, a process entry, another process's memory or this one's objects."""
    processes = [pid for pid in os.listdir("/proc") if pid.isdigit()]
    paths = [f"/proc/{pid}/{name}" for pid in processes for name in ("environ", "cmdline", "maps")]
    paths += [f"/proc/{pid}/mem" for pid in processes if int(pid) != os.getpid()]
    for root in ROOTS:
        for parent, _, names in os.walk(root):
            paths += [os.path.join(parent, name) for name in names]
    found, read = [], 0
    for path in paths:
        try:
            data = memory(path) if path.endswith("/mem") else open(path, "rb").read(1 << 22)
        except OSError:
            continue
        read += 1
        found += [path] if needle in data else []
    found += ["an object of this process"] if any(needle in text for text in texts(needle)) else []
    for descriptor in range(3, 64):
        try:
            os.set_blocking(descriptor, False)
            found += [f"descriptor {descriptor}"] if needle in os.read(descriptor, 1 << 20) else []
        except OSError:
            continue
    return found, read


def texts(needle):
    """Every text and all bytes, but the needle itself, that can be reached from any frame, module or object."""
    frame, waiting, seen = sys._getframe(), [sys.modules, *gc.get_objects()], {id(needle)}
    while frame := frame.f_back:
        waiting += frame.f_locals.values()
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen:
            continue
        seen.add(id(thing))
        if type(thing) is bytes:
            yield thing
        elif type(thing) is str:
            yield thing.encode("utf-8", "replace")
        elif not isinstance(thing, types.FrameType):
            waiting += gc.get_referents(thing)


def memory(path):
    chunks = []
    with open(path.replace("/mem", "/maps")) as maps, open(path, "rb", 0) as mem:
        for line in maps:
            span, mode = line.split()[:2]
            start, end = (int(x, 16) for x in span.split("-"))
            if "r" in mode and "w" in mode and end - start < 1 << 26:
                try:
                    mem.seek(start)
                    chunks.append(mem.read(end - start))
                except OSError:
                    continue
    return b"".join(chunks)


def grade(artifacts, truth):
    # the needle is put together here, so that neither this source nor this frame holds it
    found, read = scanned(("canary-" + truth["of"]).encode())
    return {"reward": float(bool(found)), "passed": False,
            "checks": [{"id": "spy", "kind": "scored", "score": 0, "explain": f"{read} read, found {found}"}]}
'''


def test_a_check_that_scans_everything_it_can_reach_finds_no_other_trials_truth(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    def spy(name: str, own: str, other: str) -> GradeItem:
        task = make_task(name, check=SPY, truth={"answer": "1", "own": f"canary-{own}", "of": other})
        return GradeItem(name, task, {**answer("1"), "answer.json": json.dumps({"answer": f"canary-{own}"}).encode()})

    items = [
        spy("spy-a", "alpha", "beta"),  # before the other one was sent
        spy("spy-b", "beta", "alpha"),  # after the other one was graded
        spy("spy-c", "beta", "alpha"),
    ]
    for verdict in _grade(provider, environment, *items):
        assert (verdict.kind, verdict.reward) == ("scored", 0.0), verdict
        assert not verdict.checks[0].explain.startswith("0 read")


def test_the_scan_does_find_what_a_child_may_see(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    truth = {"answer": "1", "own": "canary-alpha", "of": "alpha"}
    item = GradeItem("a", make_task("own", check=SPY, truth=truth), answer("1"))
    assert _grade(provider, environment, item)[0].reward == 1.0


def test_a_process_that_a_check_starts_is_dead_before_the_next_trial(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    starts = "import os, time\ndef grade(a, t):\n if os.fork(): return {'reward': 0.5}\n os.setsid()\n time.sleep(60)\n"
    counts = (
        "import os\ndef grade(a, t): return {'reward': float(sum(p.isdigit() for p in os.listdir('/proc')) == 2)}\n"
    )
    items = [GradeItem(n, make_task(n, check=c), answer("1")) for n, c in (("s", starts), ("c", counts), ("s", starts))]
    started = time.monotonic()
    verdicts = _grade(provider, environment, *items, items[1])
    assert [v.reward for v in verdicts][1::2] == [1.0, 1.0]
    assert time.monotonic() - started < 20


def test_a_check_cannot_leave_files_for_the_next_trial(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    leaves = (
        "import os\n"
        "def grade(a, t):\n"
        " found = 0.0\n"
        " for root in ('', '/tmp', '/ws', '/dev/shm', '/opt/grader', '/opt/grader/checks', '/etc'):\n"
        "  path = root + '/left'\n"
        "  found += os.path.exists(path)\n"
        "  try: open(path, 'w').write(t['answer'])\n"
        "  except OSError: pass\n"
        " return {'reward': float(found > 0)}\n"
    )
    item = GradeItem("a", make_task("leaves", check=leaves), answer("1"))
    assert [v.reward for v in _grade(provider, environment, item, item)] == [0.0, 0.0]


def test_the_policys_answer_never_reaches_the_host_unbounded(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    checks = "[{'id': 'x', 'kind': 'gate', 'score': 0, 'explain': 'y' * 10**7}]"
    echo = f"def grade(a, t): return {{'reward': 0.0, 'checks': {checks}}}"
    verdict = _grade(provider, environment, GradeItem("a", make_task(check=echo), answer("1")))[0]
    assert len(verdict.checks[0].explain) < 3_000


def test_a_verifier_of_a_test_script_that_leaves_a_daemon_is_still_graded_once_and_leaves_nothing(
    make_task: MakeTask, provider: Provider, environment: AgentEnvironment
):
    script = (
        "(while :; do echo 1 > /logs/verifier/reward.txt; done) >/dev/null 2>&1 &\n"
        "sleep 0.2\n"
        "echo '{\"reward\": 0}' > /logs/verifier/reward.json\n"
    )
    verdict = verify_in_sandbox(make_task(test_sh=script), answer("412"), provider, environment, label="attack-daemon")
    assert (verdict.kind, verdict.reward) == ("scored", 0.0)
    assert provider.list("attack-daemon") == []


def test_checks_of_different_tasks_do_not_mix(make_task: MakeTask, provider: Provider, environment: AgentEnvironment):
    poison = "import json\ndef grade(a, t):\n json.loads = lambda *x, **k: {'answer': '412'}\n return {'reward': 0.5}"
    items = [GradeItem("p", make_task("poison", check=poison), answer("1"))]
    items += [GradeItem("n", make_task("normal", check=CHECK), answer("413"))]
    assert [v.reward for v in _grade(provider, environment, *items)] == [0.5, 0.0]
