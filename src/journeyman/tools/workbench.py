"""The environments that tools need inside a sandbox: the small one that serves them, and the workbench for code.

Both are built apart from the quickstart's environment (``agent_environment``), because building copies the installed
distributions: what nobody uses need not be copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import journeyman.documents
import journeyman.tools.inside.worktools
from journeyman.documents.commands import COMMANDS, PACKAGE
from journeyman.sandbox.environment import build_environment
from journeyman.sandbox.protocol import AgentEnvironment

TOOL_DISTRIBUTIONS: tuple[str, ...] = (
    "charset-normalizer",
    "formualizer",
    "icalendar",
    "ironcalc",
    "lxml",
    "olefile",
    "openpyxl",
    "pdfplumber",
    "pypdf",
    "pypdfium2",
    "python-calamine",
    "python-dateutil",
    "python-docx",
    "python-pptx",
    "reportlab",
    "xlsxwriter",
)
"""What ``worktools`` and ``officedocs`` import, with everything it requires."""

WORKBENCH_DISTRIBUTIONS: tuple[str, ...] = (
    *TOOL_DISTRIBUTIONS,
    "beautifulsoup4",
    "chardet",
    "markdown",
    "matplotlib",
    "numpy",
    "pandas",
    "pillow",
    "PyYAML",
    "requests",
    "scipy",
    "sympy",
    "tabulate",
    "xlrd",
)
"""What agents reach for besides; all permissive. Installed by the extra ``tools``."""

WORKBENCH_MODULES: tuple[str, ...] = (
    *("bs4", "chardet", "markdown", "matplotlib", "numpy", "pandas", "PIL", "yaml", "requests", "scipy", "sympy"),
    *("tabulate", "xlrd", "openpyxl", "docx", "pptx", "pypdf", "pypdfium2", "pdfplumber", "reportlab", "lxml"),
    *("xlsxwriter", "dateutil", "icalendar", "python_calamine", "charset_normalizer"),
)
"""What code in the workbench can import, by module name."""

TOOL_PACKAGES: Mapping[str, Path] = {
    PACKAGE: Path(journeyman.documents.__file__).parent,
    "worktools": Path(journeyman.tools.inside.worktools.__file__).parent,
}
"""Top-level package in the environment -> directory it is copied from."""


def tools_environment(root: Path) -> AgentEnvironment:
    """Build, or find below ``root``, the environment that serves every tool.

    Raises:
        EnvironmentMissing: a distribution is not installed.
    """
    return build_environment(root, distributions=TOOL_DISTRIBUTIONS, packages=TOOL_PACKAGES, programs=COMMANDS)


def workbench_environment(root: Path) -> AgentEnvironment:
    """The same with the packages that agents reach for in ``code_exec``.

    Raises:
        EnvironmentMissing: a distribution is not installed; ``pip install journeyman[tools]`` brings them.
    """
    return build_environment(root, distributions=WORKBENCH_DISTRIBUTIONS, packages=TOOL_PACKAGES, programs=COMMANDS)
