"""gradbed p4 dissector: gradbed's headers in Wireshark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from gradbed.common.errors import UserError


def dissector(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file, such as gradbed.lua; default: standard output.")
    ] = None,
) -> int:
    """Write a Wireshark dissector (Lua) of all headers, for its plugin folder or wireshark -X lua_script:FILE."""
    from gradbed.formats.wireshark.script import script

    if output is None:
        sys.stdout.write(script())
        return 0
    try:
        output.write_text(script(), encoding="utf-8")
    except OSError as error:
        raise UserError(f"--output: cannot write {output}: {error.strerror}") from None
    print(f"wrote {output}; open captures with: wireshark -X lua_script:{output} FILE.pcapng")
    return 0
