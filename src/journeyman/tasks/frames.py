"""The bytes between the harness and ``inside/grade.py``: one frame per trial out, one verdict per answer back."""

from __future__ import annotations

import json
from collections.abc import Mapping

from journeyman.tasks import errors
from journeyman.tasks.errors import RewardInvalid, VerifierCrashed, VerifierFault
from journeyman.tasks.verdict import Verdict, malformed, scored, verifier_error


def encode_frame(check_sha256: str, truth: bytes, artifacts: Mapping[str, bytes], timeout_s: float) -> bytes:
    """One trial as a frame (layout: ``inside/grade.py``).

    Args:
        check_sha256: which of the sources that the sandbox was started with.
        truth: content of ``truth.json``, as it is.
        timeout_s: seconds the check may take.
    """
    sizes = [[name, len(data)] for name, data in artifacts.items()]
    header = {"check": check_sha256, "timeout_s": timeout_s, "truth": len(truth), "artifacts": sizes}
    head = json.dumps(header).encode()
    return b"".join([len(head).to_bytes(4, "big"), head, truth, *artifacts.values()])


def decode_answer(answer: bytes) -> Verdict:
    """The verdict in an answer of ``inside/grade.py``, which is validated, not believed.

    An answer that is no verdict (a reward out of range, not JSON, an unknown kind) becomes a ``verifier_error``.
    """
    try:
        found = json.loads(answer)
        kind = found["kind"]
        if kind == "scored":
            return scored(found["reward"], found["passed"], found["checks"])
        if kind == "malformed_deliverable":
            return malformed(str(found["explain"]))
        return verifier_error(_fault(str(found["error"]), str(found["explain"])))
    except VerifierFault as fault:
        return verifier_error(fault)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return verifier_error(RewardInvalid(f"the verifier answered what is no verdict: {error}"))


def _fault(name: str, explain: str) -> VerifierFault:
    kind = getattr(errors, name, VerifierCrashed)
    is_fault = isinstance(kind, type) and issubclass(kind, VerifierFault)
    return kind(explain) if is_fault else VerifierCrashed(explain)
