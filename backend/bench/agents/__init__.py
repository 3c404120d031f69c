"""The agents of the benchmark, in the folder layout of ``adk``."""
