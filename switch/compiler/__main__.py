"""python -m gradbed.switch.compiler FILE.p4 -o OUT.json --p4runtime-files OUT.p4info.txt -I DIR -D NAME=VALUE"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gradbed.common.errors import UserError
from gradbed.switch.compiler import compile_p4


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m gradbed.switch.compiler", description="Compile a P4_16 program.")
    parser.add_argument("program", type=Path, metavar="FILE.p4")
    parser.add_argument("-o", dest="output", type=Path, metavar="OUT.json", help="BMv2 JSON")
    parser.add_argument("--p4runtime-files", type=Path, metavar="OUT.p4info.txt", help="P4Info as text")
    parser.add_argument("-I", dest="include_dirs", action="append", type=Path, default=[], metavar="DIR")
    parser.add_argument("-D", dest="defines", action="append", default=[], metavar="NAME[=VALUE]")
    arguments = parser.parse_args()
    defines = {}
    for item in arguments.defines:
        name, equals, value = item.partition("=")
        defines[name] = value if equals else "1"
    try:
        compiled = compile_p4(arguments.program, include_dirs=arguments.include_dirs, defines=defines)
        if arguments.output:
            arguments.output.write_text(compiled.json_text)
        if arguments.p4runtime_files:
            arguments.p4runtime_files.write_text(compiled.p4info_text)
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"cannot write {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    for warning in compiled.warnings:
        print(warning, file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
