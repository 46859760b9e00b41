"""Print what a vLLM wheel requires, without what text-only serving on a CPU does not need: vllm-requirements.py DIR."""

import re
import sys
import zipfile
from email.parser import Parser
from pathlib import Path

LEFT_OUT = re.compile(r"^(torch|torchaudio|torchvision|torchcodec|opencv.*)$")
"""Pictures and sound, and torch itself: its pin comes from the constraints, as the CPU build."""


def requirements(wheel: Path) -> list[str]:
    """Lines of a requirements file, from ``Requires-Dist`` without the extras."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode())
    lines = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    return ["torch", *(line for line in lines if not LEFT_OUT.match(re.split(r"[^A-Za-z0-9_.-]", line)[0].lower()))]


if __name__ == "__main__":
    (found,) = Path(sys.argv[1]).glob("*.whl")
    print("\n".join(requirements(found)))
