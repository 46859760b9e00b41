"""Machine-learning engineering: models judged on rows that nobody has seen."""
