"""Promise: every step leaves one line of JSON whatever else listens; a sink that breaks never stops a run.

``sinks`` writes records (JSONL always; TensorBoard, Weights & Biases, trackio by extra, imported when chosen), ``live``
makes the record of a step, ``lost`` tells what the staleness bound cost per length and difficulty.
"""
