"""One writer per chat (A2)."""
