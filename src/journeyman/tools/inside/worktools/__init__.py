"""worktools: what an agent's tools do, as functions over the files of one sandbox.

Promises: every call answers with text, never with nothing; a mutating tool reads back what the saved file holds; what
goes wrong with a file or an argument is an answer that says what to do. It imports itself, ``officedocs``, the standard
library and, inside functions, office libraries; it knows nothing of grades, policies or journeyman.
"""
