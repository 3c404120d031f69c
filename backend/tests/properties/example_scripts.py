"""The number of examples, and their model scripts."""

from __future__ import annotations

import asyncio
import itertools
import os

from hypothesis import HealthCheck, Phase, settings

from tests.properties.example_agent import HANGING, script
from tests.properties.random_scripts import Script

SOAK = os.environ.get("SLUICEGATE_SOAK")
"""A number of examples, drawn anew in each run; without it a run is quick and repeats the last."""

profile = settings(
    max_examples=int(SOAK or 50),
    deadline=None,
    derandomize=SOAK is None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=[Phase.generate, Phase.shrink],
)

_numbers = itertools.count()


def prepared(said: Script, *, may_hang: bool = True) -> str:
    """Let the model play a script; returns the text that selects it."""
    text = f"script {next(_numbers)}"
    script(text, [response.as_data() for response in said])
    script("another", [{"parts": [{"text": "another answer"}]}])
    for index, response in enumerate(said):
        if response.ending == "hang" and may_hang:
            HANGING[text, index] = asyncio.Event()
    return text
