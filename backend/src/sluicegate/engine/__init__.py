"""Runs turns on ADK and writes every chunk to the stream store."""
