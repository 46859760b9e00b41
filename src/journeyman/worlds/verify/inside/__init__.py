"""The verifier's program: runs in the verifier sandbox, beside ``officedocs``; it imports nothing of journeyman."""
