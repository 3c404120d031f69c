"""Turns while they run: launched, led to one end, read, watched and stopped."""
