"""Where a step is computed. A back-end holds a policy and its optimizer and does ``protocol.Trainer``, nothing else.

Promise: the same rows, weights and loss give the same gradient on every back-end and every number of processes; what a
back-end cannot do is refused by name before anything starts. ``table.make_trainer(spec, model, optimizer)`` opens one.

Modules: ``spec`` (what a recipe says), ``table`` (names and capabilities), ``local`` with ``torch`` (this process),
``group`` (FSDP2 and Megatron: a group of processes behind one socket), ``tinker`` (a service), ``hub`` (Hugging Face
directories in and out).
"""
