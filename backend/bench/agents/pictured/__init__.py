"""An agent that draws."""

from . import agent as agent
