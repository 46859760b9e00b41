"""Trials: one attempt of one task, from its first token to its one row of the error table.

Promises: every trial ends as exactly one ``Outcome`` (``outcome``); an attempt is immutable once closed; a retry is a
new trial in a fresh sandbox and keeps the failed attempt; a system error is never a reward. This room does not know
about gradients.
"""
