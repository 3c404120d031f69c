"""The user's agent: loading it, the survey of its tools, and the copy that runs."""
