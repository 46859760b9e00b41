"""Checks as data, executed: a truth (checks, files) and a deliverable in, a reward with an explanation per check out.

Promises: ``reward = prod(gates) * sum(w * s) / sum(w)``; every check explains itself; a deliverable that cannot be read
raises ``MalformedDeliverable``, whatever else goes wrong is an error of the verifier and never a zero; nothing of an
agent is imported, its programs run as children with limits; no network, no clock, no file is written.
"""

from .bundle import MalformedDeliverable as MalformedDeliverable
from .scoring import grade as grade
