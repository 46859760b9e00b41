"""A trainer that is several processes: the front in the run's own process, one rank per device behind a socket each.

Promise: a verb returns when all ranks have done it, or raises by its deadline; a rank that breaks takes the group down
with its own words, never into a hang; no process outlives the front. The front decides which rows go to which rank, so
a step is the same gradient for any number of ranks; ranks talk to each other only inside a verb, all in the same order.

Modules: ``wire`` (messages, no pickle), ``shares`` (which rows go where), ``processes`` and ``placement`` (torchrun,
Ray, a cluster's job), ``trainer`` (the front), ``rank`` (one process), ``fsdp2`` and ``megatron`` (what a rank does),
``sharded`` (checkpoints that another number of ranks reads).
"""
