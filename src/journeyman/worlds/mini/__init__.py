"""The quickstart's miniature: tiny offices and one-sentence tasks in them; seed in, the same bytes out.

``make_world`` draws a world, ``TEMPLATES`` bind tasks to it, ``gates`` judge them, ``publish`` writes Harbor
directories, ``build`` does all of it for a split. Every number comes from the truth, which never leaves.
"""
