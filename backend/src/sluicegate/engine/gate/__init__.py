"""The gate of a turn inside ADK: a plugin, the claims of its calls and their outcomes."""
