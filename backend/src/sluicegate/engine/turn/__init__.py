"""What runs one turn, and what knows the turns that run."""
