"""Promise: rollouts never wait for the trainer nor the trainer for the slowest trial; no token older than the bound is
trained unless a policy that says so is chosen and printed; submitted = trained + filtered + dropped + in flight.

The rules are pure state machines without tasks, clients or clocks (``ledger``, ``admission``, ``bound``, ``buffer``,
``settling``, ``order``, ``concurrency``, put together in ``gate``); ``asynchronous`` and ``synchronous`` drive them
over a ``TrialSource`` (``protocol``). The loop samples nothing and grades nothing.
"""
