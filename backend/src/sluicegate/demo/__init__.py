"""The demo: an agent with a scripted model that shows every feature without an API key."""
