"""Do engine and trainer hold the same model? Measured on tokens that the engine really sampled.

Promise: a fault that a mean hides is still found, because the gate looks at a high quantile, at every weight span by
itself, and at what a push of weights adds to the gap that was there before it. Tokens whose prefix was computed under
several weight versions are reported apart and never blur the gate.

Modules: ``measure`` (figures from arrays), ``gate`` (limits and verdict), ``probe`` (make an engine sample, push to it,
ask the trainer), ``deployment`` (which combinations are refused until they passed).
"""
