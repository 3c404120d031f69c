"""What stops a gated call that nobody has approved, and runs one that is."""
