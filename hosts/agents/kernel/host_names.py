"""An agent's own /etc/hosts, so that names of the emulated hosts resolve and nothing waits for a name server."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.common.namespaces import CLONE_NEWNS, MS_BIND, MS_PRIVATE, MS_REC, mount, unshare

HOSTS = Path("/etc/hosts")


def name_hosts(names: Mapping[str, str]) -> None:
    """Let this process, and its children, see the machine's /etc/hosts, if it has one, with more names.

    names: by IPv4 address. UserError.
    """
    if not HOSTS.exists():
        return
    lines = [HOSTS.read_text().rstrip("\n")]
    # Sockets for both families see IPv4 addresses in the form of IPv6 (RFC 4291, section 2.5.5.2).
    lines += [f"{form}{ip} {name}" for ip, name in names.items() for form in ("", "::ffff:")]
    try:
        unshare(CLONE_NEWNS)
        mount("none", "/", None, MS_REC | MS_PRIVATE)
        with tempfile.NamedTemporaryFile("w", prefix="gradbed-hosts-") as file:
            file.write("\n".join(lines) + "\n")
            file.flush()
            os.chmod(file.name, 0o644)
            # Stays when the file's name goes.
            mount(file.name, str(HOSTS), None, MS_BIND)
    except OSError as error:
        raise UserError(f"cannot give a host its own {HOSTS}: {error.strerror}") from None
