from __future__ import annotations

import pytest

from sluicegate.replay.speech import Heard, SpeechDetector
from tests.replay.talking import silence, tone

PAUSE = silence(0.5)


def heard(ear: SpeechDetector, pcm: bytes, size: int = 320, rate: int = 16_000) -> list[Heard]:
    return [
        boundary
        for start in range(0, len(pcm), size)
        for boundary in ear.hear(pcm[start : start + size], rate)
    ]


@pytest.mark.parametrize("hz", [61, 100, 261.6, 440, 441, 997, 1000, 3999, 7900])
@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_the_pitch_of_a_tone_is_heard_to_one_hertz(hz: float, rate: int) -> None:
    ear = SpeechDetector()
    heard(ear, tone(hz, rate=rate), rate=rate)
    assert ear.sound() == f"a tone of {round(hz)} Hz"


def test_the_louder_of_two_tones_is_heard() -> None:
    quiet, loud = tone(300, loudness=2000), tone(700, loudness=9000)
    mixed = b"".join(
        (
            int.from_bytes(a, "little", signed=True) + int.from_bytes(b, "little", signed=True)
        ).to_bytes(2, "little", signed=True)
        for a, b in zip(
            (quiet[i : i + 2] for i in range(0, len(quiet), 2)),
            (loud[i : i + 2] for i in range(0, len(loud), 2)),
            strict=True,
        )
    )
    ear = SpeechDetector()
    heard(ear, mixed)
    assert ear.sound() == "a tone of 700 Hz"


@pytest.mark.parametrize("size", [1, 2, 7, 320, 640, 6400, 100_000])
def test_speech_is_heard_alike_however_it_is_cut(size: int) -> None:
    ear = SpeechDetector()
    assert heard(ear, PAUSE + tone(440) + PAUSE, size) == [Heard.START, Heard.END]
    assert ear.sound() == "a tone of 440 Hz"


def test_only_a_long_pause_ends_what_is_said() -> None:
    ear = SpeechDetector(silence_ms=500)
    assert heard(ear, tone(440) + silence(0.48) + tone(440)) == [Heard.START]
    assert heard(ear, PAUSE) == [Heard.END]
    assert heard(ear, PAUSE) == []


def test_the_patience_can_be_chosen() -> None:
    assert heard(SpeechDetector(silence_ms=100), tone(440) + silence(0.1)) == [
        Heard.START,
        Heard.END,
    ]


def test_each_speech_is_heard_by_itself() -> None:
    ear = SpeechDetector()
    heard(ear, tone(440) + PAUSE)
    heard(ear, tone(880) + PAUSE)
    assert ear.sound() == "a tone of 880 Hz"


def test_a_quiet_room_is_silence() -> None:
    ear = SpeechDetector()
    assert heard(ear, tone(440, loudness=400)) == []
    assert (ear.speaking, ear.sound()) == (False, "silence")


def test_held_by_the_client_speech_outlasts_pauses() -> None:
    ear = SpeechDetector()
    assert ear.hold()
    assert heard(ear, tone(440) + silence(2) + tone(440)) == []
    assert ear.release()
    assert ear.sound() == "a tone of 440 Hz"
    assert not ear.release()


def test_the_end_of_the_stream_ends_a_speech_at_once() -> None:
    ear = SpeechDetector()
    assert heard(ear, tone(440)) == [Heard.START]
    assert ear.release()


def test_less_than_a_frame_is_heard_when_the_stream_ends() -> None:
    ear = SpeechDetector()
    assert heard(ear, tone(440, seconds=0.018)) == []
    assert ear.release()
    assert ear.sound().startswith("a tone of ")


@pytest.mark.parametrize("pcm", [b"\xff\x7f" * 3, b"\xff\x7f" * 1000, b"\x01"])
def test_what_has_no_pitch_is_heard_all_the_same(pcm: bytes) -> None:
    ear = SpeechDetector()
    ear.hold()
    heard(ear, pcm)
    ear.release()
    assert ear.sound() in {"a tone of 0 Hz", "silence"}
