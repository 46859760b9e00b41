"""The command line: how people reach every other room.

Promises: no logic; each verb parses its words, calls a function of a lower room, prints, returns an exit code. Results
go to stdout (with ``--json`` one JSON document and nothing else), progress to stderr, and the last line says where the
result lies. Exit codes: 0 done, 1 a gate failed, 2 usage or configuration, 3 environment, 4 something broke, 130
interrupted. ``journeyman --help`` imports no verb's machinery: heavy imports sit inside the verb that needs them.

One file per verb; ``verb`` is what they share, ``main`` maps errors to exit codes.
"""
