"""A certificate authority of the tests, and a certificate for localhost."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@dataclass(frozen=True)
class Certificates:
    """The files of an authority and of a server that it has certified."""

    authority: Path
    server: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        """The TLS context of the server."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.server, self.key)
        return context


def create_certificates(folder: Path) -> Certificates:
    """Create an authority and its certificate for localhost."""
    files = Certificates(folder / "authority.pem", folder / "server.pem", folder / "key.pem")
    authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = (
        _builder("Test authority", "Test authority", authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority_key, SHA256())
    )
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    server = (
        _builder("localhost", "Test authority", key)
        .add_extension(names, critical=False)
        .sign(authority_key, SHA256())
    )
    files.authority.write_bytes(authority.public_bytes(Encoding.PEM))
    files.server.write_bytes(server.public_bytes(Encoding.PEM))
    files.key.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    )
    return files


def _builder(subject: str, issuer: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=2))
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])
