"""The complete benchmark, in its short form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from bench.command import main
from bench.files import FIRST, PEAK_MIB


def test_the_short_form_prints_a_table_and_writes_json_and_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written, drawn = tmp_path / "bench.json", tmp_path / "bench.svg"

    assert main(["--short", "--json", str(written), "--picture", str(drawn)]) == 0

    printed = capsys.readouterr().out
    assert "50 deltas of 20 bytes, median of 1" in printed
    document = json.loads(written.read_text("utf-8"))
    for name in ("floor", "sse", "socket"):
        assert len(document["rows"][name]["per_delta"]) == 1
    assert drawn.read_text("utf-8").startswith("<svg ")


def test_pending_approvals_hold_no_process_resources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "pending", "--json", str(written)]) == 0

    assert "5 idle pending approvals" in capsys.readouterr().out
    document = json.loads(written.read_text("utf-8"))
    # S2-R18: a pending approval exists in the stores and uses no process resources.
    # Resources of an earlier request may be released meanwhile.
    assert document["pending"]["tasks"] <= 0
    assert document["pending"]["sockets"] <= 0


# AgentTool's own.
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated")
@pytest.mark.filterwarnings(r"ignore:\[EXPERIMENTAL\]:UserWarning")
def test_an_approval_in_a_tree_is_compared_with_the_tree_without_gates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "trees", "--json", str(written)]) == 0

    assert "The turns of an approval in an AgentTool" in capsys.readouterr().out
    trees = json.loads(written.read_text("utf-8"))["trees"]
    assert [len(tree["approved"]) for tree in trees] == [2, 2, 2]
    assert all(tree["ratio"] > 0 for tree in trees)


def test_closed_idle_sockets_leave_little_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "idle", "--json", str(written)]) == 0

    assert "20 idle sockets" in capsys.readouterr().out
    idle = json.loads(written.read_text("utf-8"))["idle"]
    assert (idle["sockets"], len(idle["opened"]), len(idle["closed"])) == (20, 1, 1)


def test_small_requests_are_answered_beside_large_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "flood", "--json", str(written)]) == 0

    assert "While another user sends the largest requests" in capsys.readouterr().out
    flood = json.loads(written.read_text("utf-8"))["flood"]
    assert flood["read"]
    assert flood["chat"]
    assert flood["large"]


def test_the_cost_of_ledger_and_lease_is_a_row_for_each_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "ledger", "--json", str(written)]) == 0

    rows = [line for line in capsys.readouterr().out.splitlines() if "per approval" in line]
    costs = json.loads(written.read_text("utf-8"))["ledger"]
    assert [cost["store"] for cost in costs] == ["SQLite", "PostgreSQL"]
    assert [cost["budget"] for cost in costs] == [0.003, 0.005]
    for row, cost in zip(rows, costs, strict=True):
        assert cost["store"] in row
        assert 0 < min(cost["seconds"]) <= cost["median"] <= max(cost["seconds"])


def test_the_latency_of_live_audio_is_a_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "spoken", "--json", str(written)]) == 0

    assert "first byte of sound, 5 times" in capsys.readouterr().out
    assert len(json.loads(written.read_text("utf-8"))["spoken"]["seconds"]) == 5


def test_turns_with_images_do_not_leak_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "files", "--json", str(written)]) == 0

    assert "10 turns with two pictures each" in capsys.readouterr().out
    files = json.loads(written.read_text("utf-8"))["files"]
    assert len(files["resident"]) == 10
    # Ten turns contain 1.3 MiB of images; the server keeps at most its caches.
    assert files["resident"][-1] - files["resident"][1] < 16
    if sys.platform == "linux":
        # S4-R42: read completely, once, without copies.
        assert all(peak < PEAK_MIB for peak in files["peaks"].values())
        assert files["peaks"][FIRST] > 8


def test_an_unknown_peer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--only", "floor,nobody"])

    assert "nothing to measure that is called nobody" in capsys.readouterr().err


def test_live_chats_through_googles_client_are_compared_with_a_relay(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "voice", "--json", str(written)]) == 0

    assert "the model's call to its card" in capsys.readouterr().out
    voice = json.loads(written.read_text("utf-8"))["voice"]
    assert len(voice["card"]) == len(voice["yes"]) == 5
    [talk] = voice["talks"]
    for measured in (voice["first"], talk):
        for of in ("ours", "relay"):
            assert 0 < min(measured[of]) <= max(measured[of]) < 30


def test_the_cost_of_telemetry_is_a_ratio_within_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "telemetry", "--json", str(written)]) == 0

    assert "Telemetry, CPU of a delta" in capsys.readouterr().out
    ratios = json.loads(written.read_text("utf-8"))["telemetry"]
    assert set(ratios) == {"on", "off"}
    assert all(0.1 < ratio < 10 for ratio in ratios.values())


def test_the_inbox_is_measured_on_both_databases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = tmp_path / "bench.json"

    assert main(["--short", "--only", "inbox", "--json", str(written)]) == 0

    assert "The first page of 20 waiting approvals, PostgreSQL" in capsys.readouterr().out
    inboxes = json.loads(written.read_text("utf-8"))["inbox"]
    assert [len(inbox["webhooks"]) for inbox in inboxes] == [6, 6]
    assert [len(inbox["requested"]) for inbox in inboxes] == [2, 2]
