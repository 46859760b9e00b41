"""Worlds and the tasks in them: seed in, the same bytes out; every number comes from the truth, which never leaves.

``make_world`` draws a world, ``TEMPLATES`` bind tasks to it, ``gates`` judge them, ``publish`` writes Harbor
directories, ``build`` does all of it for a split, ``splits`` keeps splits apart.
"""
