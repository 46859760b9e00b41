"""Promise: each back-end carries out the Trainer verbs (``train/protocol.py``) and changes no number by how it does so.

``torch`` is one device, full float32. The modules here import torch at the top and are imported by the functions that
need them.
"""
