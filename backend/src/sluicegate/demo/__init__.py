"""The demo: an agent whose scripted model shows every rule without a key."""
