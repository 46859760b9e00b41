"""Every section of task.toml, tasks of several steps, and rewriting without loss."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from task_directories import draft

from journeyman.errors import InputError, Problem
from journeyman.tasks.errors import VerifierCrashed
from journeyman.tasks.rewrite import edited_toml, rewrite_task
from journeyman.tasks.steps import ends_after, load_any, load_steps, verdict_of_steps
from journeyman.tasks.task import TaskDirectoryError, load_task, write_task
from journeyman.tasks.task_parts import read_config
from journeyman.tasks.task_toml import TaskToml
from journeyman.tasks.toml_text import to_toml
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error

FULL = """\
# A task with every section there is.
schema_version = "1.4"
source = "hub"
multi_step_reward_strategy = "final"
artifacts = [
    "/app/out",  # plain form
    { source = "/var/log/db", destination = "db", exclude = ["*.tmp"], service = "db" },
]

[task]
name = "lab/ledger"
version = "3"
description = "keep the books"
keywords = ["books"]

[[task.authors]]
name = "A. Writer"
email = "a@example.org"

[metadata]
difficulty = "hard" # free
canary = { id = 7 }

[agent]
timeout_sec = 30.5
user = "agent"
network_mode = "allowlist"
allowed_hosts = ["Example.org.", "*.example.com", "10.0.0.0/8", "2001:DB8::1"]

[environment]
docker_image = "debian:12"
os = "Linux"
cpus = 1.5
memory_mb = 2048
gpus = 1
gpu_types = ["H100"]
skills_dir = "/skills"
workdir = "/app"
network_mode = "no-network"

[environment.tpu]
type = "v6e"
topology = "2x4"

[environment.env]
TOKEN = "${TOKEN:-none}"

[environment.healthcheck]
command = "test -e /ready"
retries = 5

[[environment.mcp_servers]]
name = "books"
transport = "http"
url = "http://localhost:8000/mcp"
headers = { Authorization = "Bearer ${BOOKS_TOKEN}" }

[[environment.mcp_servers]]
name = "calc"
transport = "stdio"
command = "calc"
args = ["--stdio"]

[verifier]
timeout_sec = 40
env = { A = "1" }

[verifier.environment]
docker_image = "debian:12"

[[verifier.collect]]
command = "dump > /var/log/db/dump"
service = "db"

[solution.env]
MODE = "fast"

[[steps]]
name = "one"
min_reward = 0.5

[steps.agent]
timeout_sec = 10

[[steps]]
name = "two"
min_reward = { reward = 0.5, style = 0.1 }
artifacts = ["/app/second"]
future_key = true

[steps.verifier]
environment_mode = "shared"
"""


@pytest.fixture
def stepped(tmp_path: Path) -> Path:
    root = tmp_path / "ledger"
    for step in ("one", "two"):
        (root / "steps" / step).mkdir(parents=True)
        (root / "steps" / step / "instruction.md").write_text(f"do {step}\n")
    (root / "tests").mkdir()
    (root / "tests" / "test.sh").write_text("true\n")
    (root / "steps" / "two" / "tests").mkdir()
    (root / "steps" / "two" / "tests" / "test.sh").write_text("true\n")
    (root / ".harborignore").write_text("*.bak\n")
    (root / "task.toml").write_text(FULL)
    return root


def test_every_section_of_the_format_is_read(stepped: Path):
    config = load_steps(stepped).config
    assert [artifact.source for artifact in config.artifacts] == ["/app/out", "/var/log/db"]
    assert (config.artifacts[1].destination, config.artifacts[1].service) == ("db", "db")
    assert config.agent.allowed_hosts == ("example.org", "*.example.com", "10.0.0.0/8", "2001:db8::1")
    environment = config.environment
    assert (environment.os, environment.cpus, environment.memory_limit_mb) == ("linux", 1.5, 2048)
    assert [server.transport for server in environment.mcp_servers] == ["streamable-http", "stdio"]
    assert environment.healthcheck is not None
    assert (environment.healthcheck.retries, environment.healthcheck.interval_sec) == (5, 5)
    assert environment.tpu is not None
    assert environment.tpu.topology == "2x4"
    assert config.verifier.collect[0].timeout_sec == 60
    assert config.verifier_mode() == "separate"
    assert config.task is not None
    assert config.task.authors[0].email == "a@example.org"


def test_a_task_of_steps_is_one_task_per_step_with_the_tables_that_hold_for_it(stepped: Path):
    task = load_steps(stepped)
    one, two = task.steps
    assert (one.id, one.step, one.instruction) == ("ledger/one", "one", "do one\n")
    assert (one.agent_timeout_s, two.agent_timeout_s) == (10, 30.5)
    assert (one.config.verifier_mode(), two.config.verifier_mode()) == ("separate", "shared")
    assert (one.tests, one.shared_tests) == (stepped / "tests", None)
    assert (two.tests, two.shared_tests) == (stepped / "steps" / "two" / "tests", stepped / "tests")
    assert [artifact.source for artifact in two.config.artifacts] == ["/app/out", "/var/log/db", "/app/second"]
    assert two.config.verifier.env == {"A": "1"}
    assert task.thresholds == ({"reward": 0.5}, {"reward": 0.5, "style": 0.1})
    assert task.strategy == "final"
    assert len(task.warnings) == 1
    assert task.warnings[0].endswith("unknown key steps[1].future_key is ignored.")


def test_a_step_without_instruction_or_verifier_is_named(stepped: Path):
    (stepped / "steps" / "one" / "instruction.md").unlink()
    (stepped / "tests" / "test.sh").unlink()
    with pytest.raises(TaskDirectoryError) as caught:
        load_any(stepped)
    assert [p.source for p in caught.value.problems] == ["steps/one/instruction.md", "steps/one/tests/test.sh"]


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ('[[steps]]\nname = "a"\n[[steps]]\nname = "A"', "two steps are named 'A'"),
        ('[[steps]]\nname = "../up"', "no portable directory name"),
        ('[[steps]]\nname = "NUL.txt"', "device"),
        ('[environment]\nallowed_hosts = ["example.org"]', "only valid with network_mode"),
        ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["https://example.org"]', "no host|no address"),
        ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["10.0.0.1/8"]', "no address or network"),
        ('[agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["*.1.2.3.4"]', "is no host"),
        ('[[environment.mcp_servers]]\nname = "a"', "needs url"),
        ('[[environment.mcp_servers]]\nname = "a"\ntransport = "stdio"', "needs command"),
        (
            '[[environment.mcp_servers]]\nname = "a"\nurl = "http://x"\nheaders = {Authorization = "Bearer abc"}',
            "holds a credential",
        ),
        ('[verifier]\nenvironment_mode = "shared"\n[verifier.environment]\nos = "linux"', "exclude each other"),
        ('[environment]\nmemory = "2G"\nmemory_mb = 1024', "2048 MB"),
        ('[environment]\nmemory = "plenty"', "is no size"),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "2"', "pattern"),
        ('artifacts = [{source = "log", service = "db"}]', "must be absolute"),
        ('artifacts = [{source = "/log", destination = "manifest.json"}]', "manifest.json is the name"),
        ('[task]\nname = "no-org"', "org/name"),
        ("[metadata]\nreward_range = [1.0, 1.0]", "no range"),
    ],
)
def test_what_the_format_forbids_is_refused_with_a_reason(tmp_path: Path, toml: str, words: str):
    (tmp_path / "task.toml").write_text(toml)
    problems: list[Problem] = []
    assert read_config(tmp_path / "task.toml", problems)[0] is None
    assert any(word in problem.message for problem in problems for word in words.split("|")), problems


def test_old_keys_mean_what_they_meant():
    old = TaskToml.model_validate({"environment": {"memory": "2G", "allow_internet": False}})
    assert (old.environment.memory_limit_mb, old.environment.network) == (2048, "no-network")


def test_a_rewrite_changes_what_was_asked_and_keeps_comments_unknown_keys_and_files(stepped: Path, tmp_path: Path):
    target = tmp_path / "copy"
    task = rewrite_task(stepped, target, {"agent": {"timeout_sec": 99}, "source": None, "metadata": {"new": {"x": 1}}})
    text = (target / "task.toml").read_text()
    for line in FULL.splitlines():
        if not line.startswith(("timeout_sec = 30.5", "source = ")):
            assert line in text, line
    assert tomllib.loads(text)["agent"]["timeout_sec"] == 99
    assert "source" not in tomllib.loads(text)
    assert (target / ".harborignore").read_text() == "*.bak\n"
    assert any("future_key" in warning for warning in task.warnings)


def test_a_rewrite_that_would_not_load_leaves_what_was_there(stepped: Path):
    with pytest.raises(TaskDirectoryError, match=r"agent\.timeout_sec"):
        rewrite_task(stepped, stepped, {"agent": {"timeout_sec": -1}})
    assert (stepped / "task.toml").read_text() == FULL
    with pytest.raises(InputError, match="leaves"):
        rewrite_task(stepped, stepped, files={"../out": b""})


def test_a_rewrite_can_replace_and_remove_files(tmp_path: Path):
    directory = write_task(draft(), tmp_path / "t")
    rewrite_task(directory, directory, files={"instruction.md": b"other\n", "tests/truth.json": None})
    assert load_task(directory).instruction == "other\n"
    assert not (directory / "tests" / "truth.json").exists()


_words = st.text("abcdefghij_-", min_size=1, max_size=8)
_values = st.booleans() | st.integers(-1000, 1000) | st.text("abc xyz#\"'", max_size=12) | st.lists(_words, max_size=3)
_unknown = st.recursive(
    st.dictionaries(_words.map("x-".__add__), _values, max_size=4),
    lambda inner: st.dictionaries(_words.map("x-".__add__), _values | inner, max_size=4),
    max_leaves=8,
)


@given(_unknown, st.lists(st.text("abc def", max_size=10), max_size=3))
def test_no_unknown_key_and_no_comment_is_lost_by_an_edit(unknown: dict[str, object], comments: list[str]):
    lines = to_toml({"schema_version": "1.4", "agent": {"timeout_sec": 5, **unknown}, **unknown}).splitlines()
    noted = [f"# {comment}" for comment in comments]
    text = "\n".join([*noted, *lines, *noted, ""])
    edited = edited_toml(text, {"agent": {"timeout_sec": 7}, "verifier": {"timeout_sec": 1}})
    values = tomllib.loads(edited)
    assert values.pop("verifier") == {"timeout_sec": 1}
    assert values == {**tomllib.loads(text), "agent": {**unknown, "timeout_sec": 7}}
    assert edited.count("# ") >= len(noted)
    for comment in noted:
        assert edited.splitlines().count(comment) >= 1
    assert edited_toml(text, {}) == text


def test_steps_after_one_below_its_threshold_are_not_run():
    assert ends_after({}, {}) is None
    assert ends_after({"reward": 0.5}, {"reward": 0.5}) is None
    assert ends_after({"reward": 0.5}, {"reward": 0.4}) == "reward is 0.4, below min_reward 0.5"
    assert ends_after({"style": 0.1}, {"reward": 1.0}) == "style is missing, below min_reward 0.1"


def test_the_whole_of_several_steps_is_their_mean_or_the_last_and_never_hides_a_broken_verifier():
    good, half, broken = scored(1.0, True), scored(0.5, False), verifier_error(VerifierCrashed("x"))
    mean = verdict_of_steps([good, half], "mean")
    assert (mean.kind, mean.reward, mean.passed) == ("scored", 0.75, False)
    assert verdict_of_steps([good, malformed("nothing")], "mean").reward == 0.5
    assert verdict_of_steps([broken, good], "mean").kind == "verifier_error"
    assert verdict_of_steps([half, good], "final") == good
    assert isinstance(verdict_of_steps([half], "mean"), Verdict)


def test_prior_context_of_a_task_is_checked_and_a_windows_task_has_its_own_script(tmp_path: Path):
    directory = write_task(draft(is_own=False), tmp_path / "t")
    (directory / "trajectory.json").write_text('{"schema_version": "ATIF-v1.8"}')
    with pytest.raises(TaskDirectoryError, match=r"trajectory\.json: trajectory: is no ATIF trajectory: agent"):
        load_task(directory)
    (directory / "trajectory.json").unlink()
    (directory / "task.toml").write_text('[environment]\nos = "windows"\n')
    with pytest.raises(TaskDirectoryError, match=r"tests/test\.bat"):
        load_task(directory)
    (directory / "tests" / "test.bat").write_text("exit 0")
    assert load_task(directory).config.environment.os == "windows"
