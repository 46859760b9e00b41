"""Laid on the path of a verifier's Python, where it is no package; see ``sitecustomize``."""
