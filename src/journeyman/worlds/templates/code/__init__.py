"""Templates of code and data."""
