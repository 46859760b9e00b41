"""Promise: a loss is a sum of token losses times weights fixed before the batch is split, so no partition into
micro-batches changes a gradient; a resumed run equals an uninterrupted one; a checkpoint is whole or it is refused.

The room runs no tool and scores no trial. torch and transformers are imported by the functions that need them.
"""
