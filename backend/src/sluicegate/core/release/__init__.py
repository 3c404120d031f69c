"""Release policies: when output is shown, and what holds it until then."""
