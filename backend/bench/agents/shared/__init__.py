"""An agent with a gated tool."""

from . import agent as agent
