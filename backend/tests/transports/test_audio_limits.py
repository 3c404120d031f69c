"""How much audio may run ahead of its clock."""

from __future__ import annotations

from sluicegate.transports.audio_limits import AudioLimits, AudioMeter

SECOND = bytes(32_000)
TOO_FAST = (1008, "audio_too_fast")
TOO_MANY = (1008, "too_many_frames")


def test_audio_may_run_ahead_by_its_limit_and_one_message() -> None:
    meter = AudioMeter(AudioLimits(message=5.0, ahead=60.0, messages_per_second=200), now=100.0)
    assert [meter.fault(5 * SECOND, 100.0) for _ in range(13)] == [None] * 13
    assert meter.fault(SECOND, 100.0) == TOO_FAST
    # What has been spoken meanwhile may be sent.
    assert meter.fault(SECOND, 101.0) is None
    assert meter.fault(SECOND, 101.0) == TOO_FAST


def test_messages_may_come_five_seconds_ahead() -> None:
    meter = AudioMeter(AudioLimits(message=5.0, ahead=60.0, messages_per_second=200), now=100.0)
    assert [meter.fault(bytes(2), 100.0) for _ in range(1_000)] == [None] * 1_000
    assert meter.fault(bytes(2), 100.0) == TOO_MANY
    assert [meter.fault(bytes(2), 101.0) for _ in range(200)] == [None] * 200
    assert meter.fault(bytes(2), 101.0) == TOO_MANY
