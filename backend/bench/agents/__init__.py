"""The agents that every server of the benchmark serves, in the folder layout of ``adk``."""
