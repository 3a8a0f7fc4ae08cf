"""What a gRPC server over TLS shows its clients, and what it asks of them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gradbed.common.errors import UserError


@dataclass(frozen=True)
class ServerTls:
    """PEM files. certificate: the server's, followed by those of authorities between it and the one clients know.

    client_ca: clients must have a certificate of one of these authorities (mutual TLS); None: anybody may call.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def credentials(self) -> Any:
        """grpc.ServerCredentials. UserError if a file cannot be read, is of another kind, or key and certificate do
        not belong together: gRPC would say so at the first call only."""
        import grpc

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            key, certificate = self.key.read_bytes(), self.certificate.read_bytes()
            authorities = None if self.client_ca is None else self.client_ca.read_bytes()
        except OSError as error:
            raise UserError(f"cannot read {error.filename}: {error.strerror}") from None
        try:
            # With a password it does not stop to ask for one.
            context.load_cert_chain(self.certificate, self.key, password="")
        except (OSError, ValueError) as error:
            raise UserError(
                f"{self.certificate} and {self.key} are not a certificate and its key, without a password, in PEM "
                f"format ({_reason(error)})"
            ) from None
        if authorities is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except OSError as error:
                raise UserError(f"{self.client_ca} has no certificate in PEM format ({_reason(error)})") from None
        return grpc.ssl_server_credentials(
            [(key, certificate)], root_certificates=authorities, require_client_auth=authorities is not None
        )


def _reason(error: Exception) -> str:
    return (getattr(error, "reason", None) or str(error)).replace("_", " ").lower()
