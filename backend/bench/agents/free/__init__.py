"""An agent without approvals."""

from . import agent as agent
