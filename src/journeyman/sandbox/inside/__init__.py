"""Programs that run inside a sandbox. They import nothing but the standard library and are copied, never imported."""
