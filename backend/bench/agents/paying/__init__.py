"""A gated agent whose model speaks at the pace of a real one."""

from . import agent as agent
