"""Certificates for tests: authorities, and what they issue, as PEM files."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from ipaddress import IPv4Address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

DAY = timedelta(days=1)


class Authority:
    """Its own certificate is at `certificate`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        unsigned = _unsigned(self._name, self._name, self._key, ends_in=DAY)
        signed = unsigned.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = _write(folder / f"{name}.crt", signed.sign(self._key, hashes.SHA256()))

    def issue(self, name: str, ends_in: timedelta = DAY, password: bytes | None = None) -> tuple[Path, Path]:
        """Certificate and key, for 127.0.0.1. ends_in: negative for one that has expired."""
        key = ec.generate_private_key(ec.SECP256R1())
        address = x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))])
        unsigned = _unsigned(_name(name), self._name, key, ends_in).add_extension(address, critical=False)
        certificate = _write(self._folder / f"{name}.crt", unsigned.sign(self._key, hashes.SHA256()))
        encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
        key_file = self._folder / f"{name}.key"
        key_file.write_bytes(
            key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
        )
        return certificate, key_file


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends_in: timedelta
) -> x509.CertificateBuilder:
    now = datetime.now(timezone.utc)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 10 * DAY)
        .not_valid_after(now + ends_in)
    )


def _write(path: Path, certificate: x509.Certificate) -> Path:
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    return path
