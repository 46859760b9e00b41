"""Training on a Tinker-compatible service: the model, its adapter and its optimizer live there, the losses here.

Promise: every loss of ours is computed here from the service's logprobs, so its gradient is that of every other
back-end; a verb ends by its deadline; a request that is sent again after a broken connection is done once (``seq_id``).
The price is one more forward per step: a service takes weights per token, not our losses.

Modules: ``client`` (the wire), ``trainer`` (the verbs).
"""
