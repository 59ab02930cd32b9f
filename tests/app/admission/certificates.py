"""Self-signed certificates for the loopback, as files."""

from __future__ import annotations

import datetime
import ipaddress
import os
import ssl
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path) -> tuple[Path, Path]:
        """The two files, replaced one after the other as a careless operator would."""
        certificate, key = folder / "tls.crt", folder / "tls.key"
        replace(certificate, self.certificate)
        replace(key, self.key)
        return certificate, key

    def client(self) -> ssl.SSLContext:
        """Trusts this certificate and no other."""
        return ssl.create_default_context(cadata=self.certificate.decode())


def replace(file: Path, content: bytes) -> None:
    """Puts a new file in the place of the old one, as Kubernetes and cert-manager do."""
    fresh = file.with_suffix(".fresh")
    fresh.write_bytes(content)
    os.replace(fresh, file)


@cache
def pair(name: str) -> Pair:
    """A new pair; the same for the same name."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    return Pair(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ),
    )
