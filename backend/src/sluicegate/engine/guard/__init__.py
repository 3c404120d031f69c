"""The approval guard: no gated call runs without an approval, and each at most once."""
