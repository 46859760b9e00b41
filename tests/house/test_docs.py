"""What the documents say is true: verbs have help and an example, links resolve, command lines parse, tables are fresh.

And what no tracked file may hold: a path of somebody's machine, the host of a package registry, a lock file.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from journeyman.cli.config import recipe_models
from journeyman.cli.main import VERBS, cli
from journeyman.cli.verb import Verb
from journeyman.config import load

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: `someone` is the agreed stand-in of tests about such paths.
MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:[w]ork|[r]oot|[f]arm|[h]ome/(?!someone\b)[a-z]+)(?:/|\b)")
#: Where such a path is one inside a sandbox or a container, not of a machine.
INSIDE = re.compile(r"bind|tmpfs|mount|sandbox", re.IGNORECASE)
REGISTRY = re.compile(r"py[p]i\.[o]rg|[p]ythonhosted|[r]egistry\.npm|[d]eb\.debian", re.IGNORECASE)
LOCK_FILES = {"uv.lock", "pylock.toml", "poetry.lock", "Pipfile.lock", "package-lock.json"}
BINARY = {".png", ".jpg", ".gif", ".svg", ".xlsx", ".docx", ".pdf", ".woff2", ".npz", ".safetensors", ".gz"}


def test_every_verb_explains_itself_with_an_example_and_offers_json():
    for name, command in verbs(VERBS):
        assert isinstance(command, Verb), name
        assert command.short_help, name
        assert command.help, name
        assert {"as_json", "quiet"} <= {parameter.name for parameter in command.params}, name
        assert command.examples, name
        for example in command.examples:
            assert example.startswith(f"journeyman {name}"), example
            assert not list(findings_in_command(example)), example


def test_options_say_what_they_do():
    silent = [
        f"{name} --{parameter.name}"
        for name, command in verbs(VERBS)
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert not silent


def test_links_resolve(pages):
    wrong = [line for page in pages for line in broken_links(page, page.read_text(encoding="utf-8"))]
    assert not wrong, "\n".join(wrong)


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "there.md").write_text("# A heading\n")
    text = "[a](there.md) [b](https://example.org) [c](absent.md) [d](there.md#a-heading) [e](there.md#nothing)"
    assert len(list(broken_links(tmp_path / "page.md", text))) == 2


def test_command_lines_in_the_documents_parse(pages, root):
    targets = set(re.findall(r"^([a-z-]+):", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    wrong = []
    for page in pages:
        for line in command_lines(page.read_text(encoding="utf-8")):
            wrong += [f"{page.name}: {line}: {finding}" for finding in findings_in_command(line, targets)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "line",
    [
        "journeyman quickstrat",
        "journeyman tasks check --jsn tasks",
        "journeyman worlds build --worlds many",
        "journeyman quickstart --rl.train-stpes 3",
        "make quickstrat",
    ],
)
def test_a_command_line_that_would_fail_is_found(line):
    assert list(findings_in_command(line, {"quickstart"}))


def test_generated_tables_are_fresh(root):
    done = subprocess.run(
        [sys.executable, "scripts/docs.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_tracked_file_names_a_machine_or_a_registry(tracked, root):
    wrong = [
        f"{path.relative_to(root)}:{number}: {found}"
        for path in tracked
        if path.suffix not in BINARY
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        for found in foreign_names(line)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_machine_path_and_a_registry_are_found_and_a_path_inside_a_sandbox_is_not():
    slash = "/"
    assert list(foreign_names(f"cd {slash}home/ann/x"))
    assert list(foreign_names("index = https://py" + "pi.org/simple"))
    assert not list(foreign_names(f"a tmpfs at {slash}root inside the sandbox"))
    assert not list(foreign_names("src/home/x and ../work/x"))


def test_no_lock_file_is_tracked_and_requirements_hold_no_address(tracked):
    assert not [path for path in tracked if path.name in LOCK_FILES]
    requirements = [path for path in tracked if re.fullmatch(r"(constraints|requirements).*\.txt", path.name)]
    assert requirements
    assert not [path for path in requirements if "://" in path.read_text(encoding="utf-8")]


@pytest.fixture
def pages(tracked) -> list[Path]:
    return [path for path in tracked if path.suffix == ".md"]


def verbs(commands: dict[str, click.Command], before: str = "") -> Iterator[tuple[str, click.Command]]:
    for name, command in commands.items():
        if isinstance(command, click.Group):
            yield from verbs(dict(command.commands), f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def broken_links(page: Path, text: str) -> Iterator[str]:
    for target in LINK.findall(FENCE.sub("", text)):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        if not path.exists():
            yield f"{page.name}: {target} does not exist"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            yield f"{page.name}: {target} has no such heading"


def anchors(text: str) -> set[str]:
    """Anchors of the headings, as the common renderers make them."""
    headings = re.findall(r"^#+ +(.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def command_lines(text: str) -> Iterator[str]:
    """Lines of fenced blocks that call journeyman or make, without prompt, comment, pipe and redirection."""
    for block in FENCE.findall(text):
        for line in block.splitlines():
            words = re.sub(r"^\s*\$ ", "", line)
            if re.match(r"(journeyman|make) [a-z-]", words):
                yield re.split(r"\s(?:[|>#]|&&)", words)[0].strip()


def findings_in_command(line: str, targets: set[str] | None = None) -> Iterator[str]:
    """Why this command line would be refused before it starts."""
    program, *words = shlex.split(line)
    if program == "make":
        yield from (f"no target {word}" for word in words if "=" not in word and word not in (targets or set()))
        return
    if "--help" in words or "--version" in words:
        words = words[: min(words.index(word) for word in ("--help", "--version") if word in words)]
    command: click.Command = cli
    try:
        while isinstance(command, click.Group) and words:
            words = [word for word in words if word != "--debug"]
            _, found, words = command.resolve_command(command.make_context(command.name, [*words]), words)
            command = found or command
        if isinstance(command, click.Group):
            return
        parsed = command.make_context(command.name, [*words])
        if "words" in parsed.params:
            check_recipe_words(parsed.params["words"], str(command.name))
    except (click.ClickException, ValueError) as error:
        yield str(getattr(error, "message", error))


TRAINED = ("--policy.model", "m", "--tasks.train", "t")
GIVEN_APART = {
    "agree": ("--engine.model", "m", "--trainer.model", "m"),
    "rl": TRAINED,
    "overfit": TRAINED,
    "sft": ("--policy.model", "m", "--data.runs", "r"),
}
"""Required keys of a recipe that its verb takes by options of its own, or that the file of the example holds."""


def check_recipe_words(words: tuple[str, ...], verb: str) -> None:
    """Raise ValueError when a flag among recipe words is refused; files are left out, for they need not exist here."""
    kind = verb if verb in recipe_models() else "quickstart"
    flags = list(words)
    while flags and not flags[0].startswith("--"):
        flags.pop(0)
    try:
        load(recipe_models()[kind], [*GIVEN_APART.get(kind, ()), *flags], {})
    except Exception as error:
        raise ValueError(str(error)) from error


def foreign_names(line: str) -> Iterator[str]:
    if not INSIDE.search(line):
        yield from (found.group(0) for found in MACHINE_PATH.finditer(line))
    yield from (found.group(0) for found in REGISTRY.finditer(line))
