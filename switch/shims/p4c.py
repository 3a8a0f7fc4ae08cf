"""p4c's command lines (the driver p4c, the compiler p4c-bm2-ss) on our compiler."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gradbed.common.errors import UserError
from gradbed.switch.shims.command_line import CommandLine, Option, parse, usage

if TYPE_CHECKING:
    from gradbed.switch.compiler import Compiled

VERSION = "1.2.5 (gradbed 0.1.0)"
FAILED = 1

_DEBUGGING = "it is for those who work on p4c"
_ONE_PIECE = "preprocessor and compiler are one program here"

# What both commands know.
_COMMON = (
    Option(("--help", "-h"), help="print this"),
    Option(("--version", "-V"), help="print the version"),
    Option(("-I",), "value", "folder to search for #include"),
    Option(("-D",), "value", "define a macro: NAME or NAME=VALUE"),
    Option(("-U",), "value", "do not define a macro after all"),
    Option(("-E",), help="preprocess only; p4c writes NAME.p4i, the others print the program"),
    Option(("--std", "-x"), "value", "language: p4-16"),
    Option(("--p4v",), "value", "language: 16"),
    Option(("--target", "-b"), "value", "bmv2"),
    Option(("--arch", "-a"), "value", "v1model"),
    Option(("--p4runtime-files",), "value", "write P4Info to these files: .txt, .txtpb, .json, .bin, with commas"),
    Option(("--p4runtime-file",), "value", "write P4Info to this file"),
    Option(("--p4runtime-format",), "value", "of --p4runtime-file: binary (default), text, json"),
    Option(("--p4runtime-entries-file", "--p4runtime-entries-files"), "value", refused="entries are not written"),
    Option(("--Wdisable",), "attached", "print no warnings, or with =NAME not those of this name"),
    Option(("--Werror", "-Werror"), "attached", "warnings are errors, or with =NAME those of this name"),
    Option(("--Wwarn", "--Winfo"), "attached", ignored="all warnings are on"),
    Option(("-W", "-Wall", "-Wextra"), "attached", ignored="all warnings are on"),
    Option(("--maxErrorCount",), "value", ignored="twenty errors are shown"),
    Option(("--disable-annotations", "--disable-annotation"), "value", ignored="unknown annotations do nothing"),
    Option(("--parser-inline-opt",), ignored="sub-parsers are always inlined"),
    Option(("--loopsUnroll",), ignored="parser loops run as loops"),
    Option(("--emit-externs",), ignored="v1model's externs are all there is"),
    Option(("--ndebug",), ignored="log_msg and assert stay in"),
    Option(("--doNotEmitIncludes",), ignored=_DEBUGGING),
    Option(("--nocpp",), ignored=_ONE_PIECE),
    Option(("--metrics",), "value", ignored=_DEBUGGING),
    Option(("-O", "-O0", "-O1", "-O2", "-O3", "-g"), "attached", ignored="the C compiler optimises"),
    Option(("-v", "--debug"), ignored=_DEBUGGING),
    Option(("-T", "--top4", "--dump", "--pp", "--toJSON", "--toJson"), "value", ignored=_DEBUGGING),
    Option(("--excludeFrontendPasses", "--excludeMidendPasses"), "value", ignored=_DEBUGGING),
    Option(("--listFrontendPasses", "--listMidendPasses", "--testJson"), ignored=_DEBUGGING),
    Option(("--fromJSON", "--fromJson"), "value", refused="give the .p4 file: p4c's own files cannot be read"),
    Option(("-M", "-MD", "-MG", "-MP", "-MMD"), ignored="no dependency files are written"),
    Option(("-MF", "-MT", "-MQ"), "value", ignored="no dependency files are written"),
)

_COMPILER_OPTIONS = (Option(("-o", "--json"), "value", "write BMv2 JSON to this file"), *_COMMON)

_DRIVER_OPTIONS = (
    Option(("-o", "--output"), "value", "folder for NAME.json; made if it is not there"),
    *_COMMON,
    Option(("-e",), help="do not preprocess: compile the NAME.p4i that lies in the folder of -o"),
    Option(("-c", "--compile", "-S"), ignored=_ONE_PIECE),
    Option(("-###", "--test-only"), refused="there are no commands to show: one program does it all"),
    Option(("-Xpreprocessor", "-Xp4c", "-Xassembler", "-Xlinker"), "value", ignored=_ONE_PIECE),
)


@dataclass(frozen=True)
class _Job:
    """A compilation."""

    source: Path
    """Program to compile."""
    json: Path | None
    """File to write, if any."""
    p4info: tuple[tuple[Path, str], ...]
    """File to write, if any, with the suffix that gives the format."""
    include_dirs: tuple[Path, ...]
    defines: dict[str, str]
    preprocess_only: bool
    preprocessed: Path | None
    """File for the preprocessed text with preprocess_only; None is standard output."""
    without_warnings: Set[str]
    warnings_as_errors: Set[str]


def driver(arguments: Sequence[str]) -> int:
    """Run p4c [-o FOLDER] ... FILE.p4: write FOLDER/FILE.json, or with -E FOLDER/FILE.p4i, which -e reads."""

    def output(line: CommandLine, source: Path) -> Path:
        folder = Path(line.last("-o") or ".")
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{source.stem}.json"

    return _main("p4c", _DRIVER_OPTIONS, arguments, output, preprocessed_suffix=".p4i")


def compiler(arguments: Sequence[str]) -> int:
    """Run p4c-bm2-ss [-o FILE.json] ... FILE.p4."""

    def output(line: CommandLine, source: Path) -> Path | None:
        name = line.last("-o")
        return Path(name) if name else None

    return _main("p4c-bm2-ss", _COMPILER_OPTIONS, arguments, output)


def _main(
    command: str,
    options: Iterable[Option],
    arguments: Sequence[str],
    output: Callable[[CommandLine, Path], Path | None],
    preprocessed_suffix: str | None = None,
) -> int:
    """Run a command; return exit status 0, or 1 if anything is wrong, as p4c does.

    `preprocessed_suffix`: of the file that -E writes beside `output`; without one, -E prints.
    """
    try:
        line = parse(options, arguments)
        if "--help" in line:
            print(f"{command}: compile a P4_16 program for v1model to BMv2 JSON and P4Info\n{usage(options)}")
            return 0
        if "--version" in line:
            print(f"{command}\nVersion {VERSION}")
            return 0
        job = _job(line, output, preprocessed_suffix)
        for note in line.notes:
            print(f"{command}: {note}", file=sys.stderr)
        return _run(job)
    except UserError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{command}: error: cannot write {error.filename}: {error.strerror}", file=sys.stderr)
    return FAILED


def _job(
    line: CommandLine, output: Callable[[CommandLine, Path], Path | None], preprocessed_suffix: str | None
) -> _Job:
    from gradbed.switch.compiler.analysis import CATEGORIES

    if line.unknown:
        raise UserError(f"error: Unknown option {line.unknown[0]}\nUse '--help' to see all available options.")
    _check_choice(line, "--std", {"p4-16", "p4_16", "16", "P4₁₆"}, "P4_16 is the only language")
    _check_choice(line, "--p4v", {"16"}, "P4_16 is the only language")
    _check_choice(line, "--target", {"bmv2"}, "bmv2 is the only target")
    _check_choice(line, "--arch", {"v1model", "v1model2020"}, "v1model is the only architecture")
    sources = [*line.positional, *line.behind_dashes]
    if len(sources) != 1:
        raise UserError(f"error: {'no input file' if not sources else 'only one input file can be compiled'}")
    source = Path(sources[0])
    _check_file(source)
    only_preprocess = "-E" in line
    file = output(line, source)
    preprocessed = file.with_suffix(preprocessed_suffix) if file and preprocessed_suffix else None
    if preprocessed and "-e" in line and not only_preprocess:
        _check_file(preprocessed)
        source = preprocessed
    defines = {
        name: text if equals else "1"
        for name, equals, text in (define.partition("=") for define in line.values.get("-D", []))
    }
    disabled = line.values.get("--Wdisable", [])
    as_errors = line.values.get("--Werror", [])
    return _Job(
        source=source,
        json=None if only_preprocess else file,
        p4info=() if only_preprocess else tuple(_p4info_files(line)),
        include_dirs=tuple(map(Path, line.values.get("-I", []))),
        defines={name: text for name, text in defines.items() if name not in line.values.get("-U", [])},
        preprocess_only=only_preprocess,
        preprocessed=preprocessed,
        without_warnings=CATEGORIES.keys() if "" in disabled else frozenset(disabled),
        warnings_as_errors=CATEGORIES.keys() if "" in as_errors else frozenset(as_errors),
    )


def _check_file(source: Path) -> None:
    if not source.is_file():
        raise UserError(f"error: {source}: No such file or directory")


def _check_choice(line: CommandLine, name: str, offered: set[str], what: str) -> None:
    wanted = line.last(name)
    if wanted is not None and wanted not in offered:
        raise UserError(f"error: {name} {wanted}: {what} that gradbed compiles")


def _p4info_files(line: CommandLine) -> Iterable[tuple[Path, str]]:
    for name in (line.last("--p4runtime-files") or "").split(","):
        if name:
            suffix = Path(name).suffix
            if suffix not in (".txt", ".txtpb", ".json", ".bin"):
                raise UserError(
                    f"error: {name}: the suffix gives the format of P4Info, and can be .txt, .txtpb, .json or .bin"
                )
            yield Path(name), suffix
    single = line.last("--p4runtime-file")
    if single:
        format_ = line.last("--p4runtime-format") or "binary"
        suffixes = {"binary": ".bin", "text": ".txt", "json": ".json"}
        if format_ not in suffixes:
            raise UserError(f"error: --p4runtime-format {format_}: formats are binary, text and json")
        yield Path(single), suffixes[format_]


def _run(job: _Job) -> int:
    from gradbed.switch.compiler import compile_p4

    if job.preprocess_only:
        text = _text_of(_preprocessed(job))
        if job.preprocessed is None:
            print(text, end="")
        else:
            job.preprocessed.write_text(text)
        return 0
    compiled = compile_p4(
        job.source, include_dirs=job.include_dirs, defines=job.defines, without_warnings=job.without_warnings
    )
    for warning in compiled.warnings:
        print(warning, file=sys.stderr)
    errors = [warning for warning in compiled.warnings if warning.category in job.warnings_as_errors]
    if errors:
        print(f"error: {len(errors)} warnings, and --Werror makes them errors", file=sys.stderr)
        return FAILED
    if job.json is not None:
        job.json.write_text(compiled.json_text)
        _build_for_the_switch(compiled)
    for path, suffix in job.p4info:
        path.write_bytes(_p4info(compiled, suffix))
    return 0


def _build_for_the_switch(compiled: Compiled) -> None:
    """Build the program into the cache.

    Tool chains that give the compiler minutes give a switch some seconds to start.
    """
    from gradbed.switch.codegen import build_program

    # The switch reports what keeps it from being built: not all who compile run one.
    with contextlib.suppress(UserError, ValueError, RuntimeError, OSError):
        build_program(compiled.json)


def _p4info(compiled: Compiled, suffix: str) -> bytes:
    if suffix == ".bin":
        data: bytes = compiled.p4info.SerializeToString(deterministic=True)
        return data
    if suffix == ".json":
        from google.protobuf import json_format

        text: str = json_format.MessageToJson(compiled.p4info, preserving_proto_field_name=False)
        return text.encode() + b"\n"
    return compiled.p4info_text.encode()


def _preprocessed(job: _Job) -> Iterable[Any]:
    from gradbed.switch.compiler.diagnostics import CompileError, FatalError, Reporter
    from gradbed.switch.compiler.preprocessor import Preprocessor
    from gradbed.switch.compiler.source import SourceManager

    sources = SourceManager()
    reporter = Reporter(sources)
    try:
        tokens = Preprocessor(sources, reporter, job.include_dirs, job.defines).run(job.source)
    except FatalError:
        raise CompileError(reporter.diagnostics) from None
    reporter.raise_if_errors()
    return tokens


def _text_of(tokens: Iterable[Any]) -> str:
    from gradbed.switch.compiler.lexer import LINE_START, SPACE_BEFORE

    parts = []
    for token in tokens:
        if token.flags & LINE_START:
            parts.append("\n")
        elif token.flags & SPACE_BEFORE:
            parts.append(" ")
        parts.append(token.text)
    return "".join(parts) + "\n"
