"""Turns on ADK's ``run_live``: audio in and out, and gated calls that wait while it goes on."""
