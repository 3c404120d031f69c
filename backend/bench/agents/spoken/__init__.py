"""An agent that is spoken to."""

from . import agent as agent
