"""Results on disk as Harbor keeps them: ``jobs/<job>/<trial>/``.

Promises: what Harbor wrote can be read, keys nobody knows stay and are named, and what is written here Harbor reads; a
reward that our rules refuse is never passed on as one.
"""
