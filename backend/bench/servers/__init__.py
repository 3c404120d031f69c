"""The measured servers other than ``sluicegate serve``; each module has ``build``."""
