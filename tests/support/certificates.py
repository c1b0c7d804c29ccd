"""Certificates for tests that start no network."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding


def write_certificate(file: Path, days: int, since: int = -1) -> None:
    """Write a certificate that is valid from and until so many days from now."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "north")])
    now = datetime.now(UTC) + timedelta(hours=1)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now + timedelta(days=since))
        .not_valid_after(now + timedelta(days=days))
        .sign(key, hashes.SHA256())
    )
    file.write_bytes(made.public_bytes(Encoding.PEM))
