"""Office files as typed trees that find themselves again: bytes in, plain values out, each node with an address.

Promises: same bytes, same tree; a file that cannot be read or changed raises a subclass of ``UnreadableDocument`` that
names the file, the place and what to do, and nothing else; an edit leaves alone what it does not name; no network, no
clock, no knowledge of agents. The package is also copied as ``officedocs`` into environments where nothing else of this
project may be found, so it imports only itself, the standard library and, inside functions, the reader libraries.

Two views of a file: ``open_document`` gives the typed tree of every format (``docs/documents.md``), ``read`` the plain
tables that an agent's ``lookup`` works on. This file imports nothing heavy, for ``lookup`` starts through it: names of
the typed tree are loaded when they are asked for.
"""

from .reading import read as read
from .tree import NoSuchCell as NoSuchCell
from .tree import NoSuchRow as NoSuchRow
from .tree import UnreadableDocument as UnreadableDocument
from .tree import cell as cell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .editing import Change as Change
    from .editing import ChangeReport as ChangeReport
    from .editing import Edited as Edited
    from .node import Document as Document
    from .node import Node as Node
    from .opening import edit as edit
    from .opening import open_document as open_document
    from .opening import write as write

_HOMES = {
    "Change": "editing",
    "ChangeReport": "editing",
    "Document": "node",
    "Edited": "editing",
    "Node": "node",
    "edit": "opening",
    "open_document": "opening",
    "write": "opening",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
