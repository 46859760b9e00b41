"""What is the case in a world, when it was so and when it was known: one SQLite database that no agent ever sees."""

from journeyman.worlds.truth.store import Ambiguous as Ambiguous
from journeyman.worlds.truth.store import Truth as Truth
from journeyman.worlds.truth.store import View as View
