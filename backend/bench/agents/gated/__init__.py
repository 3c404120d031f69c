"""An agent that may ask a person."""

from . import agent as agent
