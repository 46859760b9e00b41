"""From the plan to bytes: pure functions of the content, the same bytes in every process, time zone and locale.

``render_plan`` writes every document and application of a plan, and records where each stated fact came to lie.
"""
