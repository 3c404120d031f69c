from __future__ import annotations

import pytest

from sluicegate.replay.speech_detection import SpeechBoundary, SpeechDetector
from tests.replay.live_runs import silence, tone

PAUSE = silence(0.5)


def detected(
    detector: SpeechDetector, pcm: bytes, size: int = 320, rate: int = 16_000
) -> list[SpeechBoundary]:
    return [
        boundary
        for start in range(0, len(pcm), size)
        for boundary in detector.detect(pcm[start : start + size], rate)
    ]


@pytest.mark.parametrize("hz", [61, 100, 261.6, 440, 441, 997, 1000, 3999, 7900])
@pytest.mark.parametrize("rate", [16_000, 24_000])
def test_the_pitch_of_a_tone_is_exact_to_one_hertz(hz: float, rate: int) -> None:
    detector = SpeechDetector()
    detected(detector, tone(hz, rate=rate), rate=rate)
    assert detector.describe() == f"a tone of {round(hz)} Hz"


def test_the_louder_of_two_tones_is_described() -> None:
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
    detector = SpeechDetector()
    detected(detector, mixed)
    assert detector.describe() == "a tone of 700 Hz"


@pytest.mark.parametrize("size", [1, 2, 7, 320, 640, 6400, 100_000])
def test_detection_does_not_depend_on_the_size_of_the_input(size: int) -> None:
    detector = SpeechDetector()
    assert detected(detector, PAUSE + tone(440) + PAUSE, size) == [
        SpeechBoundary.START,
        SpeechBoundary.END,
    ]
    assert detector.describe() == "a tone of 440 Hz"


def test_only_a_long_pause_ends_speech() -> None:
    detector = SpeechDetector(silence_ms=500)
    assert detected(detector, tone(440) + silence(0.48) + tone(440)) == [SpeechBoundary.START]
    assert detected(detector, PAUSE) == [SpeechBoundary.END]
    assert detected(detector, PAUSE) == []


def test_the_length_of_the_pause_can_be_configured() -> None:
    assert detected(SpeechDetector(silence_ms=100), tone(440) + silence(0.1)) == [
        SpeechBoundary.START,
        SpeechBoundary.END,
    ]


def test_each_speech_is_described_separately() -> None:
    detector = SpeechDetector()
    detected(detector, tone(440) + PAUSE)
    detected(detector, tone(880) + PAUSE)
    assert detector.describe() == "a tone of 880 Hz"


def test_a_quiet_room_is_silence() -> None:
    detector = SpeechDetector()
    assert detected(detector, tone(440, loudness=400)) == []
    assert (detector.is_speaking, detector.describe()) == (False, "silence")


def test_pauses_between_the_clients_marks_do_not_end_speech() -> None:
    detector = SpeechDetector()
    assert detector.start_activity()
    assert detected(detector, tone(440) + silence(2) + tone(440)) == []
    assert detector.end_activity()
    assert detector.describe() == "a tone of 440 Hz"
    assert not detector.end_activity()


def test_the_end_of_the_stream_ends_speech() -> None:
    detector = SpeechDetector()
    assert detected(detector, tone(440)) == [SpeechBoundary.START]
    assert detector.end_activity()


def test_an_incomplete_frame_counts_at_the_end_of_the_stream() -> None:
    detector = SpeechDetector()
    assert detected(detector, tone(440, seconds=0.018)) == []
    assert detector.end_activity()
    assert detector.describe().startswith("a tone of ")


@pytest.mark.parametrize("pcm", [b"\xff\x7f" * 3, b"\xff\x7f" * 1000, b"\x01"])
def test_audio_without_a_pitch_is_described(pcm: bytes) -> None:
    detector = SpeechDetector()
    detector.start_activity()
    detected(detector, pcm)
    detector.end_activity()
    assert detector.describe() in {"a tone of 0 Hz", "silence"}
