"""The dry run: every task at training concurrency before a single gradient, and whose fault each failure was.

Promise: a run directory holds the plan, every attempt, the audit and what a person said of it; killed at any instant,
the same command goes on. A rate always stands beside its interval. The gate is judged on what ran, and not judged when
too much broke.
"""
