"""What a person asks of a chat, from the plan to a turn that is ready to run."""
