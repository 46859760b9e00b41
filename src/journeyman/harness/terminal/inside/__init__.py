"""What runs inside the sandbox: a program that holds a pty and a screen. Standard library only."""
