"""Compares the server with its peers; ``python backend/bench`` prints one table."""
