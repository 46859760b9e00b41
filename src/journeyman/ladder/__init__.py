"""The ladder: seven gated steps that walk worlds -> trials -> training -> evaluation, and the report of one run.

Promises: seven steps, seven gates; stops at the first gate that fails and says what to look at; the same command
continues an interrupted run; one report. It contains no algorithm: each step calls the rooms below.
"""
