"""A root LlmAgent that hands over to sequences, loops or parallel agents, below a shell agent.

ADK runs a root LlmAgent as a node, and resumes the author of the answered call alone: what the
sequence, the loop or the parallel agents around it would do next is lost. What it runs below a
shell agent it resumes from the root down. So the engine puts one above such a root.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from sluicegate.adk_private import ResumableShell, agent_of_message

if TYPE_CHECKING:
    from google.adk.agents.base_agent import BaseAgent
    from google.adk.apps.app import App
    from google.adk.sessions.session import Session

NAME: Final = "sluicegate_root"
"""The author of the events that hold the state of the shell."""


class ShellRoot(ResumableShell):
    """Runs the agent that a message is for, as a Runner does below a root LlmAgent."""

    def choose(self, session: Session) -> BaseAgent:
        """Return the agent that a message is for."""
        [root] = self.sub_agents
        return agent_of_message(root, session)

    # ADK: the Runner runs the agent that it finds by the author of an event. The shell is on the
    # way to every agent, so it is what is found.

    def find_agent(self, name: str) -> BaseAgent | None:
        """Return the shell itself for every agent below it."""
        return self if super().find_agent(name) is not None else None

    def find_sub_agent(self, name: str) -> BaseAgent | None:
        """Return the shell itself for every agent below it."""
        return self if super().find_sub_agent(name) is not None else None


def in_shell(app: App) -> App:
    """Return an App whose root, an LlmAgent, runs below a shell."""
    root = cast("BaseAgent", app.root_agent)
    shell = ShellRoot(name=NAME, sub_agents=[root])
    # The tree below must not notice: its root has instructions for all of it, and no parent.
    root.parent_agent = None
    return app.model_copy(update={"root_agent": shell})
