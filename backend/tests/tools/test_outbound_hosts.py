"""Hosts and addresses of workers (ASVS 5 1.3.6, OWASP SSRF)."""

from __future__ import annotations

import pytest

from sluicegate.errors import ConfigurationError
from sluicegate.tools.outbound_hosts import ConnectionRule, WorkerHosts

HIDDEN = [
    "127.0.0.1",
    "10.0.0.7",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "fd00::1",
    "ff02::1",
    "::ffff:10.0.0.7",
    "::ffff:169.254.169.254",
    "::10.0.0.7",
    "64:ff9b::a9fe:a9fe",
    "2002:a00:7::1",
    "nothing",
]
PUBLIC = ["93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:93.184.216.34"]


@pytest.mark.parametrize("address", HIDDEN)
def test_an_address_that_is_not_public_is_refused_unless_it_is_named(address: str) -> None:
    refusal = ConnectionRule("tools.example").refusal(address)
    assert refusal is not None
    if address != "nothing":
        assert "not public and not in the setting worker_hosts (--worker-host)" in refusal
    rule = WorkerHosts(["10.0.0.0/8", "169.254.169.254", "::1"]).configured("shop", "http://a/")
    named = ("10.0.0.7", "169.254.169.254", "::1")
    is_named = address.rpartition(":")[2] in named or address in (*named, "64:ff9b::a9fe:a9fe")
    assert (rule.refusal(address) is None) is (is_named or address == "2002:a00:7::1")


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_connected_to(address: str) -> None:
    assert ConnectionRule("tools.example").refusal(address) is None


def test_the_literal_host_of_a_url_is_named_by_it_and_localhost_is_loopback_only() -> None:
    assert WorkerHosts().configured("shop", "http://10.0.0.7/mcp").refusal("10.0.0.7") is None
    assert WorkerHosts().configured("shop", "http://10.0.0.7/mcp").refusal("10.0.0.8") is not None
    local = WorkerHosts().configured("shop", "http://LOCALHOST./mcp")
    assert [local.refusal(each) is None for each in ("127.0.0.1", "::1", "10.0.0.7")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("entries", "url", "peer", "allowed"),
    [
        ([], "http://10.0.0.7:8001/mcp", "10.0.0.7", True),
        ([], "http://10.0.0.7:8001/mcp", "::ffff:10.0.0.7", True),
        ([], "http://[::ffff:10.0.0.7]:8001/mcp", "10.0.0.7", True),
        ([], "http://10.0.0.7:8001/mcp", "10.0.0.8", False),
        ([], "http://10.0.0.7:8001/mcp", None, False),
        ([], "http://93.184.216.34/mcp", "10.0.0.8", False),
        ([], "http://localhost:8001/mcp", "127.0.0.1", True),
        ([], "http://localhost:8001/mcp", "10.0.0.7", False),
        ([], "https://tools.example/mcp", "93.184.216.34", False),
        (["tools.example"], "https://Tools.Example./mcp", None, True),
        (["bücher.example"], "https://xn--bcher-kva.example/mcp", None, True),
        (["tools.example"], "https://a.tools.example/mcp", None, False),
        (["10.0.0.0/8"], "http://10.0.0.7:8001/mcp", None, True),
        (["10.0.0.0/8"], "http://10.evil.example/mcp", None, False),
    ],
)
def test_a_registered_host_is_its_peer_or_named(
    entries: list[str], url: str, peer: str | None, allowed: bool
) -> None:
    hosts = WorkerHosts(entries)
    if allowed:
        hosts.registered("shop", url, peer)
    else:
        with pytest.raises(ConfigurationError, match=r"nor in the setting worker_hosts \(--worker"):
            hosts.registered("shop", url, peer)


@pytest.mark.parametrize("entry", ["http://a", "a b", "", "10.0.0.0/99", "a/b", "*.example"])
def test_an_entry_that_is_no_host_is_refused(entry: str) -> None:
    with pytest.raises(ConfigurationError, match="The setting worker_hosts names"):
        WorkerHosts([entry])
