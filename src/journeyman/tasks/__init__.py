"""Tasks: a task is a Harbor 1.4 directory that anyone can read, and a grade is one of three kinds.

Promises: ``load_task`` reports every problem of a directory at once and a directory is published whole or not at all;
a ``Verdict`` is ``scored``, ``malformed_deliverable`` or ``verifier_error`` and only the first two carry a number; the
verifier runs in a fresh sandbox in which no agent ever ran, sees declared artifacts only, as bytes, and never imports
or executes one of them. This room does not know which policy acted.

Read in this order: ``task_toml`` and ``task`` (the directory), ``verdict`` and ``reward_file`` (the grade),
``artifacts`` (what may be graded), ``verify`` (many trials in one sandbox), ``harbor`` (one test script in its own
sandbox), ``regrade`` (again, from what was kept). Then what is exchanged with others: ``steps`` and ``rewrite`` (their
tasks), ``oracle`` (their solutions, here), ``results`` and ``atif`` (trials), ``imports``, ``rubric`` and ``judge``.
"""
