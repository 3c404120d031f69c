"""The check against a real key, played with a script in its place."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import wave
from array import array
from typing import TYPE_CHECKING

import pytest

from tests.docs.markdown import DOCS

if TYPE_CHECKING:
    from pathlib import Path

SCRIPT = """
scenarios:
  - match: "(?i)pay|440"
    responses:
      - parts:
          - call: {name: pay, args: {recipient: Ada, amount: 5}}
      - parts:
          - audio: {tone_hz: 300, seconds: 0.2}
          - transcript: {role: model, text: "Ada has the money."}
"""


def checked(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the check without the keys of this machine."""
    kept = {name: value for name, value in os.environ.items() if name != "GOOGLE_API_KEY"}
    program = DOCS.parent / "scripts" / "live_check.py"
    return subprocess.run(
        [sys.executable, str(program), *options],
        env=kept | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def spoken(path: Path) -> str:
    """A recording: half a second of a tone."""
    step = 2 * math.pi * 440 / 16_000
    samples = array("h", (round(12_000 * math.sin(step * n)) for n in range(8_000)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16_000)
        file.writeframes(samples.tobytes())
    return str(path)


def test_without_a_key_the_check_is_one_sentence() -> None:
    done = checked()
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "Set GOOGLE_API_KEY to a key of the Gemini API; without one nothing is connected.\n"
    )


@pytest.mark.parametrize("is_spoken", [False, True])
def test_the_check_prints_the_card_its_approval_and_the_answer(
    tmp_path: Path, *, is_spoken: bool
) -> None:
    script = tmp_path / "script.yaml"
    script.write_text(SCRIPT, "utf-8")
    options = ["--wav", spoken(tmp_path / "question.wav")] if is_spoken else []
    done = checked("--model-script", str(script), *options)
    assert done.returncode == 0, done.stdout + done.stderr
    seen = [line.split("s  ", 1)[1] for line in done.stdout.splitlines()]
    assert seen[0] == "ready, 16000 Hz in, 24000 Hz out"
    assert 'call of pay: {"recipient": "Ada", "amount": 5}' in seen
    card, yes = seen.index("card: the call waits for an approval"), seen.index("approved over HTTP")
    result = seen.index('result: {"recipient": "Ada", "paid": 5}')
    assert card < yes < result
    assert "answer: Ada has the money." in seen
    assert seen[-1].startswith("finished; ")
