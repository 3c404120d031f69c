"""A live agent on Google's own client."""

from . import agent as agent
