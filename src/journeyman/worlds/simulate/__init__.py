"""Three fiscal years of a company, and the months since, as rows of its truth; no document is written here.

Each stage draws from a stream of its own and records the events that its rows come from. The order is that of
``stages.STAGES``; a later stage may read what an earlier one wrote.
"""
