"""Tasks of others become task directories of ours.

Promises: an archive cannot write outside its place nor grow without bound; nothing of the source is dropped (what has
no field of ours lies in ``tests/source.json``); a rubric is kept and graded by a judge, and without a judge such a task
has no reward at all.
"""
