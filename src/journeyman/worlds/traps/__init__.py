"""Traps: what makes a careless reading wrong. Each is planted on a site, and knows its wrong answers.

An operator works at one of two points: on the truth, before documents are written, so that they all follow from it; or
on the plan of documents, before they are rendered.
"""
