"""Certificates for 127.0.0.1 and a client, and the authority that signed them, for one test run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import attrs
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat


@attrs.frozen
class Certificates:
    """PEM texts."""

    authority: str
    server: str
    server_key: str
    client: str
    client_key: str


_MAY_SIGN = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


def make_certificates(user: str = "client") -> Certificates:
    """New ones; ``user`` is the common name of the client's."""
    authority_key, key, client_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
    authority = (
        _builder("authority", "authority", authority_key, authority_key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_MAY_SIGN, critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    server = (
        _builder("broker", "authority", key, authority_key)
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
        )
        .sign(authority_key, hashes.SHA256())
    )
    client = _builder(user, "authority", client_key, authority_key).sign(
        authority_key, hashes.SHA256()
    )
    return Certificates(
        _pem(authority), _pem(server), _private(key), _pem(client), _private(client_key)
    )


def _builder(
    name: str, issuer: str, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    """As RFC 5280 has certificates, which Python checks from 3.13 on."""
    now = datetime.now(UTC)
    of_signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key())
    of_key = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(of_signer, critical=False)
        .add_extension(of_key, critical=False)
    )


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()
