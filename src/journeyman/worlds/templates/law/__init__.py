"""Templates of corporate law."""
