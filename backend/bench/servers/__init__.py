"""Servers beside ``sluicegate serve``; `bench.serve` starts each module that has ``build``."""
