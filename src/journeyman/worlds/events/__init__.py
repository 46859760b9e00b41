"""What happens, and what people see of it: each kind of event emits its documents, mails, messages and meetings.

No artefact is written except by an event, so that channels agree unless a trap makes them differ.
"""
