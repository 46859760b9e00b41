"""Templates of management consulting."""
