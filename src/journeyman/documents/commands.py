"""The package's commands as executable scripts, for an environment that has it as ``lib/officedocs``.

Each script runs Python isolated (``-I``) and without ``site`` (``-S``), which halves its start, and finds the library
beside itself: ``bin/lookup`` uses ``lib/``.
"""

from __future__ import annotations

PACKAGE = "officedocs"
"""Name of this package inside an agent's environment."""

_SCRIPT = """\
#!/usr/bin/env -S python3 -I -S
\"\"\"{purpose}\"\"\"
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, __file__.rpartition("/")[0] + "/../lib")
from {package}.{module} import main

sys.exit(main())
"""

COMMANDS: dict[str, str] = {
    name: _SCRIPT.format(purpose=purpose, package=PACKAGE, module=name)
    for name, purpose in {
        "lookup": "lookup PATH ROW [COL]: print one value of a document.",
        "calc": "calc EXPR: exact + - * and brackets on decimal numbers.",
        "answer": "answer TEXT: write the deliverable answer.json.",
    }.items()
}
"""Command name -> text of an executable file."""
