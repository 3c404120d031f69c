"""Measures the server beside its peers; ``python backend/bench`` prints one table."""
