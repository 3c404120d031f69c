"""Pictures, documents and other files: what tools return, and what each model takes."""
