"""Names, arguments and contracts of every tool, as plain data that both sides of the sandbox read.

The names and arguments of the servers filesystem to code are those of Archipelago (Apache-2.0), so that a policy meets
one surface in training and in evaluation; ``search``, ``web``, ``academic`` and ``output`` are ours.
"""

from __future__ import annotations

from .apps import CALENDAR, CHAT, MAIL
from .decks import PRESENTATIONS
from .finding import ACADEMIC, CODE, OUTPUT, SEARCH, WEB
from .office import DOCUMENTS, SPREADSHEETS
from .plain import FILESYSTEM, PDFS
from .signature import Signature as Signature

SERVERS: dict[str, dict[str, Signature]] = {
    "filesystem": FILESYSTEM,
    "pdfs": PDFS,
    "documents": DOCUMENTS,
    "spreadsheets": SPREADSHEETS,
    "presentations": PRESENTATIONS,
    "mail": MAIL,
    "chat": CHAT,
    "calendar": CALENDAR,
    "search": SEARCH,
    "web": WEB,
    "academic": ACADEMIC,
    "code": CODE,
    "output": OUTPUT,
}
"""Server -> its tools by their short name, both in the order in which they are offered."""
