"""Templates of investment banking."""
