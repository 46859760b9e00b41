"""Tools over real files that a sandboxed reader has parsed: values, refusals, and proof of every oracle's plan."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from journeyman.digest import sha256
from journeyman.errors import EnvironmentMissing, InputError
from journeyman.sandbox import PROVIDERS
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment, Mount, Provider, SandboxSpec
from journeyman.tools import TOOLS, Observation, ReadCache, ReaderBroke, ReadMissing, ToolContext, call
from journeyman.tools import cache as cache_module
from journeyman.tools.agent_environment import AGENT_DISTRIBUTIONS, AGENT_PACKAGES, AGENT_PROGRAMS
from journeyman.tools.protocol import MAX_OBSERVATION_CHARS
from journeyman.worlds.mini.build import build_tasks
from journeyman.worlds.mini.checks import answer as check
from journeyman.worlds.mini.gates import plan_findings
from journeyman.worlds.mini.templates import TEMPLATES
from journeyman.worlds.mini.world import World, make_world

LABEL = "test-tools"
WAIVED = frozenset({"memory", "pids", "disk", "cpus"})
"""The files are ours; what a machine cannot limit does not matter here."""


@pytest.fixture(scope="module")
def provider() -> Provider:
    try:
        return PROVIDERS["bwrap"]()
    except EnvironmentMissing as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> AgentEnvironment:
    return build_environment(
        tmp_path_factory.mktemp("environment"),
        distributions=AGENT_DISTRIBUTIONS,
        packages=AGENT_PACKAGES,
        programs=AGENT_PROGRAMS,
    )


@pytest.fixture(scope="module")
def worlds() -> list[World]:
    return [make_world(3, "train", index) for index in range(8)]


def files_of(worlds: list[World]) -> dict[str, tuple[str, bytes]]:
    return {sha256(data): (f"{w.id}/{name}", data) for w in worlds for name, data in w.files.items()}


@pytest.fixture(scope="module")
def reads(
    tmp_path_factory: pytest.TempPathFactory, provider: Provider, environment: AgentEnvironment, worlds: list[World]
) -> ReadCache:
    reads = ReadCache(tmp_path_factory.mktemp("reads"), provider, environment, LABEL, waive=WAIVED)
    assert reads.fill(files_of(worlds)) == 40
    return reads


def context_of(world: World, reads: ReadCache) -> ToolContext:
    return ToolContext({name: sha256(data) for name, data in world.files.items()}, reads)


@pytest.fixture
def context(worlds: list[World], reads: ReadCache) -> ToolContext:
    return context_of(worlds[0], reads)


def test_every_cell_of_every_file_is_one_call_away(worlds: list[World], reads: ReadCache) -> None:
    for world in worlds:
        context = context_of(world, reads)
        for table in world.tables:
            for (entity, quarter), value in table.values.items():
                arguments = {"path": table.file, "row": entity, "col": quarter}
                assert call("lookup", arguments, context) == Observation(str(value))
        for person, client in world.clients.items():
            assert call("lookup", {"path": "owners.eml", "row": person}, context) == Observation(client)


def test_every_oracle_plan_reaches_its_answer_through_the_tools(worlds: list[World], reads: ReadCache) -> None:
    rng = random.Random(0)
    for world in worlds:
        context = context_of(world, reads)
        for template in TEMPLATES.values():
            bound = template.bind(world, rng)
            assert plan_findings(bound, lambda name, args, context=context: call(name, args, context).text) == []


def test_directories_in_a_path_are_ignored(worlds: list[World], context: ToolContext) -> None:
    table = worlds[0].tables[0]
    row, col = table.entities[0], table.quarters[0]
    for path in (f"/ws/{table.file}", f"../../{table.file}", f"C:\\docs\\{table.file}"):
        found = call("lookup", {"path": path, "row": row, "col": col}, context)
        assert found == Observation(str(table.values[row, col]))


def test_what_is_not_there_comes_back_as_text(worlds: list[World], context: ToolContext) -> None:
    table = worlds[0].tables[0]
    file, row, col = table.file, table.entities[0], table.quarters[0]
    for arguments, problem in [
        ({"path": "gone.csv", "row": row, "col": col}, "no such file"),
        ({"path": "", "row": row}, "no such file"),
        ({"path": "../../../etc/passwd", "row": row}, "no such file"),
        ({"path": file, "row": "Nobody", "col": col}, "no such row"),
        ({"path": file, "row": row, "col": "Q9"}, "no such cell"),
        ({"path": file, "row": row}, "no such cell"),
    ]:
        assert call("lookup", arguments, context) == Observation(f"error: {problem}", is_error=True)
    assert call("read_file", {"path": "gone"}, context) == Observation("error: no such file", is_error=True)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("submit", {"answer": "1"}),
        ("", {}),
        ("lookup", {}),
        ("lookup", {"path": "sales.csv"}),
        ("lookup", {"path": "sales.csv", "row": 3}),
        ("lookup", {"path": "sales.csv", "row": "Acme", "column": "Q1"}),
        ("lookup", {"path": "sales.csv", "row": "Acme", "col": None}),
        ("calc", {"expr": ["1"]}),
        ("calc", {"context": "x", "expr": "1"}),
        ("calc", "1+1"),
        ("read_file", None),
    ],
)
def test_a_call_that_fits_no_schema_is_malformed(name: str, arguments: object, context: ToolContext) -> None:
    found = call(name, arguments, context)  # type: ignore[arg-type]
    assert found == Observation("error: malformed call", is_error=True)


def test_calc_answers_or_says_bad_expression(context: ToolContext) -> None:
    assert call("calc", {"expr": "412+377"}, context) == Observation("789")
    for expression in ("412/377", "__import__('os')", "9" * 300, ""):
        assert call("calc", {"expr": expression}, context) == Observation("error: bad expression", is_error=True)


def test_read_file_shows_tables_alike_for_every_format(worlds: list[World], context: ToolContext) -> None:
    for table in worlds[0].tables:
        lines = ["\t".join(str(value) for value in line) for line in table.lines()]
        assert call("read_file", {"path": table.file}, context).text == "\n".join(lines)
    mail = call("read_file", {"path": "owners.eml"}, context).text.splitlines()
    assert mail == ["name\tvalue", *(f"{p}\t{c}" for p, c in worlds[0].clients.items())]


def test_long_output_is_cut_and_says_so(reads: ReadCache) -> None:
    data = b"a,b\n" + b"word,1\n" * 2000
    reads.fill({sha256(data): ("long.csv", data)})
    text = call("read_file", {"path": "long.csv"}, ToolContext({"long.csv": sha256(data)}, reads)).text
    assert text[MAX_OBSERVATION_CHARS:] == f"\n[{14003 - MAX_OBSERVATION_CHARS} characters left out]"


def test_pure_means_the_same_observation_twice(worlds: list[World], reads: ReadCache) -> None:
    assert {tool.contract for tool in TOOLS.values()} == {"pure"}
    for name, arguments in [("read_file", {"path": "owners.eml"}), ("lookup", {"path": "owners.eml", "row": "x"})]:
        results = {call(name, arguments, context_of(worlds[1], reads)) for _ in range(3)}
        assert len(results) == 1


def test_a_second_cache_reads_nothing_again(
    worlds: list[World], reads: ReadCache, provider: Provider, environment: AgentEnvironment
) -> None:
    again = ReadCache(reads.directory, provider, environment, LABEL, waive=WAIVED)
    assert again.fill(files_of(worlds)) == 0
    key = sha256(worlds[0].files["owners.eml"])
    assert again.tree(key) == reads.tree(key)


def test_a_tree_that_was_changed_on_disk_is_not_believed(
    worlds: list[World], provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    files = files_of(worlds[:1])
    first = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    first.fill(files)
    key = sha256(worlds[0].files["owners.eml"])
    path = tmp_path / f"{key}.json"
    path.write_text(path.read_text().replace(next(iter(worlds[0].clients)), "Mallory"))
    later = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    with pytest.raises(ReadMissing, match="was never read"):
        later.tree(key)
    assert later.fill(files) == 1
    assert later.tree(key) == first.tree(key)


def test_trees_of_another_reader_are_read_again(
    worlds: list[World], provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    files = files_of(worlds[:1])
    ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED).fill(files)
    other = AgentEnvironment(environment.path, "0" * 64)
    assert ReadCache(tmp_path, provider, other, LABEL, waive=WAIVED).fill(files) == 5


def test_a_corrupt_workbook_is_named_and_the_others_are_read(
    worlds: list[World], provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    (name,) = [name for name in worlds[0].files if name.endswith(".xlsx")]
    files = dict(worlds[0].files)
    files[name] = files[name][:200]
    reads = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    with pytest.raises(InputError, match=rf"1 unreadable document: world/{name}: damaged xlsx"):
        reads.fill({sha256(data): (f"world/{file}", data) for file, data in files.items()})
    context = ToolContext({file: sha256(data) for file, data in files.items()}, reads)
    assert call("read_file", {"path": name}, context) == Observation("error: unreadable file", is_error=True)
    assert not call("read_file", {"path": "owners.eml"}, context).is_error
    later = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    with pytest.raises(InputError, match="damaged xlsx"):
        later.fill({sha256(data): (file, data) for file, data in files.items()})


def test_of_many_unreadable_documents_some_are_named(
    provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    reads = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    with pytest.raises(InputError, match=r"^30 unreadable documents: .*; and 22 more$") as told:
        reads.fill({sha256(name.encode()): (name, b"x") for name in (f"{n}.odt" for n in range(30))})
    assert str(told.value).count("no reader for 'odt'") == 8


def test_a_reader_that_dies_is_a_system_fault_and_what_was_read_stays(
    worlds: list[World],
    provider: Provider,
    environment: AgentEnvironment,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    entry = cache_module.READER_ENTRY
    monkeypatch.setattr(cache_module, "READER_ENTRY", (*entry[:-1], "os:abort"))
    reads = ReadCache(tmp_path, provider, environment, LABEL, waive=WAIVED)
    with pytest.raises(ReaderBroke) as caught:
        reads.fill(files_of(worlds[:1]))
    assert caught.value.cause == "tool_host_failed"
    monkeypatch.setattr(cache_module, "READER_ENTRY", entry)
    assert reads.fill(files_of(worlds[:1])) == 5


def test_no_reader_sandbox_is_left_behind(provider: Provider, reads: ReadCache) -> None:
    assert provider.list(LABEL) == []


def test_the_solution_script_of_every_family_scores_1_in_a_sandbox(
    reads: ReadCache, provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    paths = build_tasks(3, "train", 1, 5, tmp_path)
    assert {path.name.rpartition("-")[2] for path in paths} == set(TEMPLATES)
    for path in paths:
        spec = SandboxSpec(
            label=LABEL,
            mounts=(
                Mount(path / "environment" / "world", "/ws", overlay=True),
                Mount(reads.directory, "/cache"),
                Mount(path / "solution", "/solution"),
            ),
            environment=environment,
            env={"LOGS_DIR": "/tmp/logs"},
            waive=WAIVED,
        )
        sandbox = provider.create(spec)
        try:
            result = sandbox.exec(["sh", "/solution/solve.sh"], deadline_s=60)
            assert (result.return_code, result.stderr) == (0, b"")
            data = sandbox.download("/tmp/logs/artifacts/answer.json", deadline_s=60)
        finally:
            sandbox.destroy()
        truth = json.loads((path / "tests" / "truth.json").read_text())
        assert check.grade({"answer.json": data}, truth)["passed"]


def test_the_commands_read_every_file_themselves_where_no_cache_is(
    worlds: list[World], provider: Provider, environment: AgentEnvironment, tmp_path: Path
) -> None:
    world = worlds[0]
    for name, data in world.files.items():
        (tmp_path / name).write_bytes(data)
    spec = SandboxSpec(label=LABEL, mounts=(Mount(tmp_path, "/ws"),), environment=environment, waive=WAIVED)
    sandbox = provider.create(spec)
    try:
        for table in world.tables:
            row, col = table.entities[2], table.quarters[1]
            result = sandbox.exec(["lookup", table.file, row, col], deadline_s=60)
            assert (result.stdout.decode(), result.stderr) == (f"{table.values[row, col]}\n", b"")
        absent = sandbox.exec(["python3", "-c", "import journeyman"], deadline_s=60)
        assert b"ModuleNotFoundError" in absent.stderr
    finally:
        sandbox.destroy()
