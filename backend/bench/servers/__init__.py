"""The servers that are measured and are not the command line's; each module has ``build``."""
