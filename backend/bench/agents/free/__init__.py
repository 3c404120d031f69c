"""An agent that never asks a person."""

from . import agent as agent
