"""Spreadsheets: read as typed trees, written, edited part by part, recalculated by two engines.

Promises: an address found by reading works for editing; an edit keeps every part that it does not name byte-identical
and leaves true caches behind; recalculation gives the same bytes for the same input and clock.
"""

from .editing import edit as edit
from .legacy import values as values
from .reading import read as read
from .recalculation import Recalculated as Recalculated
from .recalculation import recalculate as recalculate
from .writing import write as write
