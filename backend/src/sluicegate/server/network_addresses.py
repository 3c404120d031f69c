"""The network address of a client."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from starlette.requests import HTTPConnection

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_IPV6_SITE: Final = 64
"""Bits of an IPv6 address that a network gives to one client."""


def address_of(host: str) -> Address | None:
    """Parse an address; an IPv4-mapped IPv6 address is the IPv4 address, a name is None."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


def client_network(address: Address) -> str:
    """Return what the connections of one client have in common: its address or IPv6 network."""
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((address, _IPV6_SITE), strict=False))
    return str(address)


def peer_of(connection: HTTPConnection) -> str:
    """Return the network of the peer of a connection."""
    if connection.client is None:
        return "unknown"
    address = address_of(connection.client.host)
    return connection.client.host if address is None else client_network(address)


def is_loopback(host: str) -> bool:
    """Whether an address is a loopback address; a name is not an address."""
    address = address_of(host)
    return address is not None and address.is_loopback


def is_loopback_name(host: str) -> bool:
    """Whether a host is ``localhost`` or a loopback address."""
    return host.lower() == "localhost" or is_loopback(host)
