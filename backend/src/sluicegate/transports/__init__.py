"""Thin adapters of the engine: parse a request, call the engine, encode the answer."""
