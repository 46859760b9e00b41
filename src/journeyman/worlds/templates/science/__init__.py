"""Science: measurements of the firm with units, calibration and uncertainty; answers are executed again."""
