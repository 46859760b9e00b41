"""Templates of search over a world."""
