"""An agent with a tool that returns images."""

from . import agent as agent
