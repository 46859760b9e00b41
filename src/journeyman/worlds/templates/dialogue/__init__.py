"""Templates of tool dialogue: people of a script answer mails, and what was asked and confirmed is on record."""
