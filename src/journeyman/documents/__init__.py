"""Office files as trees of text: bytes in, one plain value out, each table with a locator.

Promises: same bytes, same tree; a file that cannot be read raises ``UnreadableDocument`` and nothing else; no network,
no clock, no knowledge of agents. The package is also copied as ``officedocs`` into environments where nothing else of
this project may be found, so it imports only itself, the standard library and, inside functions, the reader libraries.

This file imports nothing heavy: the command ``lookup`` starts through it.
"""

from .reading import read as read
from .tree import NoSuchCell as NoSuchCell
from .tree import NoSuchRow as NoSuchRow
from .tree import UnreadableDocument as UnreadableDocument
from .tree import cell as cell
