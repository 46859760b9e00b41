"""Delimited text: encoding, delimiter, quoting and header found out; edits keep every other byte.

Promises: an address ``r12c3`` (row and column from 1) found by reading works for editing; line endings,
byte-order mark, quoting and encoding stay as they were; nothing is converted to numbers or dates.
"""

from .editing import edit as edit
from .reading import read as read
from .writing import write as write
