"""Certificates for the loopback, as files: self-signed ones, and those of clients."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

HOST = "127.0.0.1"
USAGE = ExtendedKeyUsageOID.CLIENT_AUTH


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, name: str = "tls") -> tuple[Path, Path]:
        """The two files, replaced one after the other as a careless operator would."""
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        replace(certificate, self.certificate)
        replace(key, self.key)
        return certificate, key

    def client(self) -> ssl.SSLContext:
        """Trusts this certificate and no other."""
        return ssl.create_default_context(cadata=self.certificate.decode())

    def client_showing(self, own: Pair, folder: Path) -> ssl.SSLContext:
        """The same, with a certificate of its own to show; OpenSSL reads that from files only."""
        context = self.client()
        context.load_cert_chain(*own.write(folder, f"shown-{len(list(folder.iterdir()))}"))
        return context


def replace(file: Path, content: bytes) -> None:
    """Puts a new file in the place of the old one, as Kubernetes and cert-manager do."""
    fresh = file.with_suffix(".fresh")
    fresh.write_bytes(content)
    os.replace(fresh, file)


@cache
def pair(name: str) -> Pair:
    """A new pair that signs for itself and for others; the same for the same name."""
    return _made(name, None, ())


@cache
def client(name: str, *, by: str, usage: x509.ObjectIdentifier = USAGE, days: int = 1) -> Pair:
    """A new pair for a client, signed by `pair(by)`; it ends in so many days."""
    return _made(name, pair(by), (usage,), days)


def _made(
    name: str, by: Pair | None, usages: Sequence[x509.ObjectIdentifier], days: int = 1
) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    issuer, signing = subject, key
    if by is not None:
        issuer = x509.load_pem_x509_certificate(by.certificate).subject
        loaded = serialization.load_pem_private_key(by.key, None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        signing = loaded
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=2))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), False
        )
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), True)
    )
    if usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), False)
    certificate = builder.sign(signing, hashes.SHA256())
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
