"""Verifiers that are copied into tasks. Each file stands alone: standard library only, no import of journeyman."""
