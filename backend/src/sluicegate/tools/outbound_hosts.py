"""Which hosts the URL of a worker or a webhook may name, and which addresses are connected to.

A registration is a request of another process to send requests somewhere, with a credential and a
chat's arguments. Its host is refused unless the setting ``worker_hosts`` names it or it is the
address from which the registration came. Whatever the host is, addresses that are not public are
connected to only if they were written down: in ``worker_hosts`` or as the host of the URL itself.

A webhook is sent to a public address, or to a host or an address that ``webhook_hosts`` names.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, TypeAlias

import httpx2

from sluicegate.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Iterable

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_IPV4_COMPATIBLE: Final = ipaddress.IPv6Network("::/96")
_MAX_PORT: Final = 65_535
_SYSTEM_PORTS: Final = 1_024
_WEB_PORTS: Final = (80, 443)

WORKER_HOSTS: Final = "worker_hosts"
WEBHOOK_HOSTS: Final = "webhook_hosts"
"""The settings that name hosts."""

_EVERY_NETWORK: Final = (ipaddress.IPv4Network("0.0.0.0/0"), ipaddress.IPv6Network("::/0"))


def parse_address(text: str) -> Address | None:
    """Return the address that a text is, None for a name; an IPv4 address inside is unwrapped."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address.teredo is not None:
        inner = address.teredo[1]
    is_embedded = address in _NAT64 or (address in _IPV4_COMPATIBLE and int(address) > 1)
    if inner is None and is_embedded:
        inner = IPv4Address(int(address) & 0xFFFF_FFFF)
    return address if inner is None else inner


def is_public(address: Address) -> bool:
    """Whether an address is one of the internet, for one receiver."""
    if isinstance(address, IPv6Address) and address.is_site_local:
        return False
    return address.is_global and not address.is_multicast


@dataclass(frozen=True, slots=True)
class ConnectionRule:
    """The addresses to which the server may connect for one URL.

    ``host`` is its host; ``networks`` are those of the ``setting``. ``is_host_named``: the URL
    itself names the address that it has as its host.
    """

    host: str = ""
    networks: tuple[Network, ...] = ()
    setting: str = WORKER_HOSTS
    is_host_named: bool = True

    def refusal(self, address: str) -> str | None:
        """Return why the host may not be reached at an address, None if it may."""
        found = parse_address(address)
        if found is None:
            return f"{self.host} has the address {address[:100]}, which cannot be read"
        if _is_in(found, self.networks) or is_public(found):
            return None
        if self.is_host_named and found == parse_address(self.host):
            return None
        if self.is_host_named and self.host == "localhost" and found.is_loopback:
            return None
        where = _setting(self.setting)
        return f"{self.host} has the address {found}, which is not public and not in {where}"


class WorkerHosts:
    """The hosts of a setting, ``worker_hosts`` or another: names, addresses and networks.

    Raises:
        ConfigurationError: An entry is none of these.
    """

    def __init__(self, entries: Iterable[str] = (), setting: str = WORKER_HOSTS) -> None:
        self._setting = setting
        self._names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ipaddress.ip_network(entry, strict=False))
            except ValueError:
                if parse_address(entry) is not None or not _is_name(entry):
                    raise ConfigurationError(
                        f"The setting {setting} names {entry!r}, which is no host name, no "
                        "address and no network."
                    ) from None
                self._names.add(_plain(httpx2.URL(f"http://{entry}").raw_host.decode()))
        self._networks = tuple(networks)

    def configured(self, name: str, url: str) -> ConnectionRule:
        """Return the rule of a worker of the server's configuration, whose host is named there.

        Raises:
            ConfigurationError: The URL is not valid.
        """
        return ConnectionRule(_host_of(f"worker {name}", url), self._networks)

    def webhook(self, name: str, url: str) -> ConnectionRule:
        """Return the rule of a webhook: what is not public must be in the setting.

        Raises:
            ConfigurationError: The URL is not valid, or not encrypted and not in the setting.
        """
        host = _host_of(f"webhook {name}", url)
        address = parse_address(host)
        is_named = host in self._names or (address is not None and _is_in(address, self._networks))
        if not is_named and httpx2.URL(url).scheme != "https":
            raise ConfigurationError(
                f"The URL of the webhook {name} begins with http://; use https://, or name its "
                f"host in {_setting(self._setting)}."
            )
        networks = _EVERY_NETWORK if is_named else self._networks
        return ConnectionRule(host, networks, self._setting, is_host_named=False)

    def registered(self, name: str, url: str, peer: str | None) -> ConnectionRule:
        """Return the rule of a worker that registers from ``peer``, None if it is not known.

        Raises:
            ConfigurationError: The URL is not valid, or its host or its port is not allowed.
        """
        host = _host_of(f"worker {name}", url)
        port = httpx2.URL(url).port
        if port is not None and port < _SYSTEM_PORTS and port not in _WEB_PORTS:
            raise ConfigurationError(
                f"The port {port} of the worker {name} is not allowed; use 80, 443, or one from "
                f"{_SYSTEM_PORTS} on."
            )
        address = parse_address(host)
        own = None if peer is None else parse_address(peer)
        is_local = host == "localhost" and own is not None and own.is_loopback
        is_own = is_local or (address is not None and address == own)
        is_named = host in self._names or (address is not None and _is_in(address, self._networks))
        if not is_own and not is_named:
            raise ConfigurationError(
                f"The host {host} of the worker {name} is neither the address from which it "
                f"registers nor in {_setting(self._setting)}."
            )
        return ConnectionRule(host, self._networks)


def _setting(field: str) -> str:
    return f"the setting {field} (--{field.removesuffix('s').replace('_', '-')})"


def _host_of(receiver: str, url: str) -> str:
    """Return the host of a receiver's URL, as the client that connects to it reads the URL."""
    try:
        parts = httpx2.URL(url)
        is_usable = parts.scheme in ("http", "https") and parts.port != 0
        is_usable = is_usable and not parts.userinfo and not parts.fragment
        is_usable = is_usable and (parts.port or 1) <= _MAX_PORT
        host = _plain(parts.raw_host.decode())
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        is_usable, host = False, ""
    if not is_usable or not (_is_name(host) or parse_address(host) is not None):
        raise ConfigurationError(f"The address of the {receiver} is no http or https URL.")
    return host


def _plain(host: str) -> str:
    return host.lower().removesuffix(".")


def _is_name(host: str) -> bool:
    labels = _plain(host).split(".")
    return len(host) <= 253 and all(
        label and len(label) <= 63 and label.replace("-", "a").replace("_", "a").isalnum()
        for label in labels
    )


def _is_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)
