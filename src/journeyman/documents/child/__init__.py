"""Files of unknown origin, handled in a child process that is reused while it is healthy.

Promises: every call returns or raises a subclass of ``UnreadableDocument`` by its deadline; no file takes more memory
than the limit, ends the calling process or leaves one behind. The child gets bytes and gives back JSON and bytes, never
pickles, so that a parser that was taken over can at worst answer wrongly.

- A child that passes its deadline is killed, and so is one that panicked or came close to its memory limit; the next
  call starts another.
- A child ends by itself when its parent is gone: an idle one at once, a busy one by an alarm that the kernel keeps
  (``deadline_s`` and a little), also while a parser holds Python's lock.
"""

from .calls import DEADLINE_S as DEADLINE_S
from .calls import MEMORY_MB as MEMORY_MB
from .calls import diff_safely as diff_safely
from .calls import edit_safely as edit_safely
from .calls import read_safely as read_safely
from .calls import recalculate_safely as recalculate_safely
from .calls import write_safely as write_safely
from .pool import close_children as close_children
