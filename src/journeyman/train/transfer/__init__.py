"""Weights from the trainer's process to an engine in another one: by disk, by shared memory, or by a collective.

Promise: what an engine is handed is what was sent, tensor for tensor: each has a digest, and one that differs stops the
push before a weight was touched. That guards the way, not the engine: whether the weights are in force is shown by its
logprobs (``train/agreement``). Every wait has a deadline; a push that fails leaves the engine with its old version.

``WAYS`` names the ways. The trainer's side ``send``s a state and gets a ``Manifest``, a small JSON document that goes
to the engine's process by whatever channel there is; the engine's side ``take``s the manifest and holds the state while
it loads it. Modules: ``manifest``, ``files`` (disk and shared memory), ``collective``, ``receiver`` (both ends as one
``WeightReceiver``).
"""
