"""Traces by what people name: a folder, a file, the beginning of files' names, or the numbers of a transformer."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from common.errors import UserError
from hosts.systems.training.traces.chakra.messages import read_records
from hosts.systems.training.traces.chakra.reading import NAME, ChakraTrace
from hosts.systems.training.traces.settings import TraceSettings
from hosts.systems.training.traces.trace import Trace
from hosts.systems.training.traces.transformer.model import TransformerModel
from hosts.systems.training.traces.transformer.trace import TransformerTrace


def open_trace(what: Path | str | TransformerModel, settings: TraceSettings | None = None) -> Trace:
    """what: the numbers of a transformer; or of files the folder that has one trace, their common beginning
    (FOLDER/PREFIX), or one of them. No rank's file is read yet. UserError if there is no trace, or a rank's file is
    missing."""
    if isinstance(what, TransformerModel):
        return TransformerTrace(what)
    return _of_files(Path(what), settings or TraceSettings())


def _of_files(path: Path, settings: TraceSettings) -> Trace:
    found = _traces(path)
    if not found:
        raise UserError(f"{path}: no trace is there: files are called PREFIX.RANK.et")
    if len(found) > 1:
        shown = ", ".join(sorted(prefix for prefix, _ in found)[:5])
        raise UserError(f"{path}: there are several traces ({shown}): name one, as {path}/{min(found)[0]}")
    ((prefix, suffix),) = found
    files = found[prefix, suffix]
    for rank in range(len(files)):
        if rank not in files:
            raise UserError(
                f"{files[max(files)].parent / prefix}: there is no file of rank {rank} ({prefix}.{rank}.{suffix})"
            )
    name = str(path)
    return ChakraTrace(name, files, read_records, settings)


def _traces(path: Path) -> dict[tuple[str, str], dict[int, Path]]:
    """(prefix, suffix) -> rank -> file, of all that the path may mean."""
    one = NAME.fullmatch(path.name)
    folder, wanted = path, None
    if one is not None and path.is_file():
        folder, wanted = path.parent, (one["prefix"], one["suffix"])
    elif not path.is_dir():
        folder, wanted = path.parent, (path.name, "")
    found: dict[tuple[str, str], dict[int, Path]] = defaultdict(dict)
    try:
        for file in sorted(folder.iterdir()):
            parts = NAME.fullmatch(file.name)
            if parts is None or (
                wanted and (parts["prefix"] != wanted[0] or not parts["suffix"].startswith(wanted[1]))
            ):
                continue
            found[parts["prefix"], parts["suffix"]][int(parts["rank"])] = file
    except OSError as error:
        raise UserError(f"cannot read {folder}: {error.strerror}") from None
    return found
