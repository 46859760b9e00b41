"""The seven steps, one file each: what it does, and the gate that decides whether the next one starts."""
