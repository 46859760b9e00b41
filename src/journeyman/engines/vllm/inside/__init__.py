"""Programs that run outside journeyman's process, without it: the loader of vLLM's workers, and the watchdog."""
