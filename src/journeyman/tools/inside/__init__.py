"""Sources of the program that runs inside a sandbox; nothing here is imported by it as part of journeyman."""
