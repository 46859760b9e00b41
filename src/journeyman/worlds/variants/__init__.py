"""Other deliverables from a right one: mutants that must fail, resaved ones that must not, hostile ones, baselines.

Promises: same bound task and seed, same variants; a mutant differs from the right answer in what it says, a positive
only in how it is written.
"""
