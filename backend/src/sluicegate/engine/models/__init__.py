"""The wrappers of models: the fast lane, backpressure, files in requests, errors without text."""
