"""What kubelet mounts into a pod, and an API server's certificate, from an authority of our own.

The authority has no key identifiers, as those of many clusters have none: RFC 5280 wants them, and
a TLS client that is strict about it refuses such a cluster.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"


def mounted(folder: Path, token: str) -> Path:
    """The folder with its `token` and `ca.crt`."""
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text(f"{token}\n", encoding="utf-8")
    (folder / "ca.crt").write_bytes(_authority()[0].public_bytes(serialization.Encoding.PEM))
    return folder


def server_tls(folder: Path) -> ssl.SSLContext:
    """What an API server of that authority serves HOST with; its files are put into `folder`."""
    authority, authority_key = _authority()
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = (
        _unsigned("apiserver", key.public_key(), issuer=authority.subject)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), False
        )
        .sign(authority_key, hashes.SHA256())
    )
    path = folder / "apiserver.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(path)
    return context


@cache
def _authority() -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
    certificate = (
        _unsigned("authority", key.public_key(), issuer=name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    return certificate, key


def _unsigned(
    name: str, key: ec.EllipticCurvePublicKey, issuer: x509.Name
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=1))
    )
