"""Templates of coordinated work."""
