"""Promise: real trials behind the training loop: an engine in a process of its own, tasks of any set, weights in shared
memory; a killed process loses what it had not reported and nothing else.

``train`` knows no trials and ``trials`` no gradients; this folder joins them. It holds no algorithm.
"""
