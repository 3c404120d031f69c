"""Files of chats and of tool results: stored once, referred to everywhere else."""
