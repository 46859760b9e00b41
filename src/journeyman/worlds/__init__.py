"""The environment factory: worlds from a seed, tasks in them, verifiers and gates; the truth never leaves.

``mini/`` is the quickstart's miniature. ``office.make_office`` makes a whole office: a bitemporal ``truth/``, three
fiscal years of ``simulate/``, ``events/`` that emit every artefact, a ``plan``, ``render/`` and the ``traps/`` in it.
Same seed, split and index, same bytes, in every process. ``splits`` keeps splits apart.
"""
