"""Imports go down only: a room imports rooms of a lower number, and heavy libraries stay inside their adapters."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator

#: The floor everybody stands on; modules beside the rooms, and the one package among them.
FLOOR = {"errors", "config", "deadline", "digest", "durable", "clock", "seeds", "redact", "cores", "_version"}
HEAVY = {"torch", "transformers", "ray", "vllm", "scipy", "openpyxl", "docx", "pdfplumber", "reportlab", "xlsxwriter"}
#: Folders and modules that exist to wrap a heavy library: they may import it at their top.
ADAPTERS = ("engines/embedded/", "engines/vllm/inside/", "train/")
#: Programs that run where journeyman is not installed: inside a sandbox, or copied into the agent's environment.
ALONE = ("/inside/", "documents/")


def test_every_room_stands_in_the_architecture_and_every_floor_module_is_known(modules, rooms):
    folders = {path.split("/")[0] for path in modules if "/" in path} - FLOOR
    files = {path.removesuffix(".py") for path in modules if "/" not in path} - {"__init__"}
    assert folders <= rooms.keys()
    assert files <= FLOOR


def test_rooms_import_only_rooms_of_a_lower_number(modules, rooms):
    wrong = [line for path, tree in modules.items() for line in upward_imports(path, tree, rooms)]
    assert not wrong, "\n".join(wrong)


def test_an_import_upward_sideways_or_hidden_in_a_function_is_found(rooms):
    source = "def f():\n    from journeyman.train import sft\nimport journeyman.engines.protocol\n"
    found = list(upward_imports("tasks/task.py", ast.parse(source), rooms))
    assert len(found) == 2
    assert not list(upward_imports("trials/run.py", ast.parse("import journeyman.engines.protocol"), rooms))
    assert list(upward_imports("errors.py", ast.parse("from journeyman import train"), rooms))
    assert list(upward_imports("tasks/a/b.py", ast.parse("from ... import engines"), rooms))


def test_what_runs_inside_a_sandbox_imports_nothing_of_journeyman(modules):
    wrong = [
        f"{path}:{node.lineno} imports {name}"
        for path, tree in modules.items()
        if any(part in f"/{path}" if part.startswith("/") else path.startswith(part) for part in ALONE)
        for node, name in imports(path, tree)
        if name.split(".")[0] == "journeyman" and not _is_relative_inside(path, node, name)
    ]
    assert not wrong, "\n".join(wrong)


def test_heavy_libraries_are_imported_inside_functions_or_by_their_adapter(modules):
    wrong = [
        line for path, tree in modules.items() if not path.startswith(ADAPTERS) for line in heavy_at_top(path, tree)
    ]
    assert not wrong, "\n".join(wrong)


def test_a_heavy_import_at_the_top_is_found_and_one_for_types_is_not():
    assert list(heavy_at_top("tasks/x.py", ast.parse("try:\n    import torch.nn\nexcept ImportError:\n    pass")))
    assert not list(heavy_at_top("tasks/x.py", ast.parse("if TYPE_CHECKING:\n    import torch")))
    assert not list(heavy_at_top("tasks/x.py", ast.parse("def f():\n    import torch")))


def test_opening_every_room_imports_no_heavy_library(modules):
    rooms = sorted(path.split("/")[0] for path in modules if path.count("/") == 1 and path.endswith("/__init__.py"))
    script = "\n".join(f"import journeyman.{room}" for room in rooms) + (
        f"\nimport sys\nprint(sorted({HEAVY!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == "[]"


def imports(path: str, tree: ast.AST) -> Iterator[tuple[ast.Import | ast.ImportFrom, str]]:
    """Absolute names of everything a module imports, wherever in it."""
    package = ["journeyman", *path.split("/")[:-1]]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            for alias in node.names:
                yield node, ".".join([*base, *([node.module] if node.module else []), alias.name])


def upward_imports(path: str, tree: ast.AST, rooms: dict[str, int]) -> Iterator[str]:
    own = path.split("/")[0] if "/" in path else ""
    own = "" if own in FLOOR else own
    floor = rooms.get(own, 0)
    for node, name in imports(path, tree):
        parts = name.split(".")
        if parts[0] != "journeyman" or len(parts) < 2 or parts[1] in (own, *FLOOR) or parts[1].startswith("__"):
            continue
        if rooms.get(parts[1], 99) >= floor:
            yield f"src/journeyman/{path}:{node.lineno} imports {name}: room {rooms.get(parts[1], '?')} from {floor}"


def heavy_at_top(path: str, tree: ast.Module) -> Iterator[str]:
    for node in at_top(tree.body):
        for _, name in imports(path, node):
            if name.split(".")[0] in HEAVY:
                yield f"src/journeyman/{path}:{node.lineno} imports {name} at its top"


def at_top(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Imports that run when the module is imported; those under ``if TYPE_CHECKING`` do not."""
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from at_top(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for name in ("body", "orelse", "finalbody", "handlers"):
                children = getattr(node, name, [])
                statements = [s for h in children for s in h.body] if name == "handlers" else children
                yield from at_top(statements)


def _is_relative_inside(path: str, node: ast.Import | ast.ImportFrom, name: str) -> bool:
    """Whether a relative import stays in what is copied together: the module's folder, or the whole room documents."""
    home = ["documents"] if path.startswith("documents/") else path.split("/")[:-1]
    folder = ".".join(["journeyman", *home])
    return isinstance(node, ast.ImportFrom) and node.level > 0 and name.startswith(f"{folder}.")
