"""A live agent."""

from . import agent as agent
