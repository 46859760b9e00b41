"""The report of one run: a schema, three files written from it, and a way to compare two of them.

Promises: ``report.json`` holds every number that ``report.md`` and ``report.html`` print; no score without its kind,
n and interval; ``mean_reward`` and ``pass@1`` never share a column; fields that measure time are marked, so two runs
can be compared without them. It computes no score: numbers come from ``evals/`` and the steps.

Modules: ``model`` (the whole report), ``sections`` (its rows), ``figures`` (gates, tables, curves), ``replay`` (one
trajectory), ``timeless`` (``without_time``), ``write`` (``write_report``), ``markdown``, ``html``, ``schema`` (its
reference).
"""
