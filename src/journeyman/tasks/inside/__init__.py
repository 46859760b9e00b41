"""Programs that run inside the verifier sandbox: standard library only, and nothing of journeyman is beside them."""
