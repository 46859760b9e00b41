"""Mathematics over the firm's own tables: optima with proofs, exact counts."""
