"""The validity of the certificates in a kit, checked when a process starts and while it runs.

A process whose certificate has expired, or is not valid yet by the clock of its machine, could only wait for ever: no
other process would accept its connections. It ends instead, with words and an exit code for whatever supervises it.
"""

import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from dpcausal.errors import CertificateError, redact_errors
from dpcausal.federation.operation.health import DAYS_LEFT, certificates_of, validity_of
from dpcausal.federation.transports.nvflare.hardening import is_site

EXIT_CODE = 3
"""The exit code of a process that ends because its certificate is not valid."""

_CHECK_SECONDS = 20.0
_DAY = timedelta(days=1)
_SITE = "renew it with dpcausal site renew FOLDER, and send the request to the coordinator."
_COORDINATOR = "renew it with dpcausal federation renew FOLDER."


@dataclass(frozen=True)
class Validity:
    """When a kit can be used: while both its certificate and that of its authority are valid."""

    kit: Path
    start: datetime
    end: datetime
    name: str
    remedy: str

    @classmethod
    def of(cls, kit: Path) -> "Validity":
        """Read the certificates of a kit."""
        own, root = certificates_of(kit)
        with redact_errors(OSError, ValueError, instead=lambda error: _unreadable(kit, error)):
            start, end = validity_of(own, root)
            subject = x509.load_pem_x509_certificate(own.read_bytes()).subject
        name = subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
        return cls(kit, start, end, str(name), _SITE if is_site(kit) else _COORDINATOR)

    def days_left(self, now: datetime) -> int:
        """Return the number of whole days until the end; negative after it."""
        return (self.end - now) // _DAY

    def check(self, now: datetime) -> None:
        """Raise unless the kit can be used now."""
        if now > self.end:
            raise CertificateError(
                expected="a certificate that has not expired",
                got=f"one of {self.name!r} in {self.kit} that expired on {_day(self.end)}; this machine's clock says "
                f"{_day(now)}",
                hint=f"{self.remedy} If the clock is wrong, correct it.",
            )
        if now < self.start:
            raise CertificateError(
                expected="a certificate that is valid already",
                got=f"one of {self.name!r} in {self.kit} that is valid from {_day(self.start)}; this machine's clock "
                f"says {_day(now)}",
                hint="correct the clock of this machine.",
            )

    def warning(self, now: datetime) -> str:
        """Return a sentence if the certificate expires soon, and an empty text otherwise."""
        left = self.days_left(now)
        if left > DAYS_LEFT:
            return ""
        return f"The certificate of {self.name!r} expires on {_day(self.end)}, in {left} days: {self.remedy}"


def check_certificate(kit: Path) -> None:
    """Raise unless a kit can be used now; print a warning if its certificate expires soon."""
    validity, now = Validity.of(kit), datetime.now(UTC)
    validity.check(now)
    if warning := validity.warning(now):
        print_line(f"Warning: {warning}")


def watch_certificate(kit: Path) -> None:
    """Check a kit in the background. End the process when it cannot be used any more, and warn once a day before."""
    validity = Validity.of(kit)  # what this process uses: a renewed kit counts after a restart

    def run() -> None:
        warned = datetime.now(UTC)
        while True:
            time.sleep(_CHECK_SECONDS)
            now = datetime.now(UTC)
            try:
                validity.check(now)
            except CertificateError as error:
                print_line(f"Error: {error}")
                os._exit(EXIT_CODE)
            if now - warned >= _DAY and (warning := validity.warning(now)):
                print_line(f"Warning: {warning}")
                warned = now

    threading.Thread(target=run, name="certificate", daemon=True).start()


def _unreadable(kit: Path, error: Exception) -> CertificateError:
    return CertificateError(
        problem=f"There is no readable certificate in {kit} ({type(error).__name__})", hint="create the kit again."
    )


def _day(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def print_line(line: str) -> None:
    """Print a line to the log of this process, which is standard error."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def keep_server_key(new: Path, old: Path, authority: Path) -> None:
    """Put a server's key into its new kit, and sign the new certificate for it.

    Sites hold tokens that the server signed with its key. With another key, a restarted server would refuse them until
    each site is restarted too.
    """
    certificate, key_file = new / "startup" / "server.crt", old / "startup" / "server.key"
    issued = x509.load_pem_x509_certificate(certificate.read_bytes())
    key = load_pem_private_key(key_file.read_bytes(), None).public_key()
    builder = x509.CertificateBuilder(
        issuer_name=issued.issuer,
        subject_name=issued.subject,
        public_key=key,  # type: ignore[arg-type]
        serial_number=x509.random_serial_number(),
        not_valid_before=issued.not_valid_before_utc,
        not_valid_after=issued.not_valid_after_utc,
    )
    for extension in issued.extensions:
        of_key = isinstance(extension.value, x509.SubjectKeyIdentifier)
        value = x509.SubjectKeyIdentifier.from_public_key(key) if of_key else extension.value  # type: ignore[arg-type]
        builder = builder.add_extension(value, extension.critical)
    root = load_pem_private_key((authority / "rootCA.key").read_bytes(), None)
    signed = builder.sign(root, issued.signature_hash_algorithm)  # type: ignore[arg-type]
    certificate.write_bytes(signed.public_bytes(Encoding.PEM))
    shutil.copyfile(key_file, new / "startup" / "server.key")
