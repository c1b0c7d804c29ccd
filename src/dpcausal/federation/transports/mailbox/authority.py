"""The certificates of a mailbox: an authority of its own, and the server's certificate that it signs.

A site learns the certificate of the authority from its invitation. The server's certificate can then be renewed without
any action at the sites.
"""

import hashlib
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from dpcausal.errors import TransportError, redact_errors
from dpcausal.utils.durable_files import create_file

AUTHORITY = "authority.pem"
SERVER = "server.pem"
_AUTHORITY_KEY, _SERVER_KEY = "authority.key", "server.key"
_AUTHORITY_DAYS = 3650
_EARLIER = timedelta(hours=1)  # clocks differ


def create_authority(folder: Path) -> None:
    """Create the authority of a mailbox. Whoever can read its key can pretend to be the server."""
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dpcausal mailbox authority")])
    certificate = (
        _builder(name, name, key, _AUTHORITY_DAYS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(sign=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write_key(folder / _AUTHORITY_KEY, key)
    (folder / AUTHORITY).write_bytes(certificate.public_bytes(Encoding.PEM))


def issue_server_certificate(folder: Path, host: str, days: int) -> datetime:
    """Create a new key and certificate for the server, and return the certificate's last day."""
    with redact_errors(OSError, ValueError, TypeError, instead=lambda _: _no_authority(folder)):
        authority = load_pem_private_key((folder / _AUTHORITY_KEY).read_bytes(), password=None)
        issuer = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
    if not isinstance(authority, EllipticCurvePrivateKey):
        raise _no_authority(folder)
    key = generate_private_key(SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "dpcausal mailbox")])
    certificate = (
        _builder(name, issuer.subject, key, days)
        .add_extension(x509.SubjectAlternativeName([_name_of(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(sign=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.public_key()), critical=False)
        .sign(authority, hashes.SHA256())
    )
    (folder / _SERVER_KEY).unlink(missing_ok=True)
    _write_key(folder / _SERVER_KEY, key)
    (folder / SERVER).write_bytes(certificate.public_bytes(Encoding.PEM))
    return certificate.not_valid_after_utc


def last_day(file: Path) -> datetime:
    """Return the time until which a certificate is valid."""
    with redact_errors(OSError, ValueError, instead=lambda _: _no_authority(file.parent)):
        return x509.load_pem_x509_certificate(file.read_bytes()).not_valid_after_utc


def fingerprint_of(certificate: str) -> str:
    """Return the SHA-256 of a certificate in PEM, in hexadecimal digits; empty if it is none."""
    try:
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.strip())).hexdigest()
    except ValueError:
        return ""


def server_context(folder: Path) -> ssl.SSLContext:
    """Return the TLS settings of the server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(folder / SERVER, folder / _SERVER_KEY)
    return context


def client_context(authority: str) -> ssl.SSLContext:
    """Return TLS settings that accept servers with a certificate of this authority, for their host, and no others."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_verify_locations(cadata=authority)
    return context


def _builder(subject: x509.Name, issuer: x509.Name, key: EllipticCurvePrivateKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=days))
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=sign,
        crl_sign=sign,
        encipher_only=False,
        decipher_only=False,
    )


def _name_of(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write_key(file: Path, key: EllipticCurvePrivateKey) -> None:
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    create_file(file, text.decode())


def _no_authority(folder: Path) -> TransportError:
    return TransportError(
        expected=f"the certificates of a mailbox in {folder}",
        got="none, or unreadable ones",
        hint="create a mailbox with: dpcausal federation mailbox init FOLDER --host HOST.",
    )
