"""Building office worlds with their gates: what ``worlds/`` declares as data is executed here, in sandboxes.

Promises: a task is published only when every gate passed on it, and its report lies beside its truth; all gradings of a
worker share one warm verifier that forks per deliverable; the oracle from files works through the agent's own tools on
the files an agent would see; a build that was stopped goes on with the world it was in.
"""
