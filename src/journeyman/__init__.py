"""journeyman: train agents that finish real work, and prove it.

Rooms are layered: a room imports only rooms of a lower number (docs/architecture.md). The modules beside this file are
floor 0, shared by every room: errors, config, deadline, digest, durable, clock, seeds.
"""

__version__ = "0.1.0"
