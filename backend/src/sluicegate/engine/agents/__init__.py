"""What the engine knows of the user's agent before it runs, and the copy of it that runs."""
