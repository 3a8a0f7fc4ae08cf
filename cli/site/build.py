"""The documents as a folder of static pages."""

from __future__ import annotations

import logging
import os
import shutil
from pathlib import Path

from gradbed.cli.site.sources import ROOT
from gradbed.common.caller import caller
from gradbed.common.errors import UserError
from gradbed.common.modules import FOLDERS
from gradbed.common.resources import scratch_folder

SETTINGS = ROOT / "mkdocs.yml"
MARK = "gradbed-docs.txt"
"""Lies in every folder that is made: only such a folder is replaced."""


def build(folder: Path) -> None:
    """Make the site in a folder, or make it anew where one is. What was there stays until the new one is whole.

    UserError if the folder holds something else or cannot be written, or a document has a link that leads nowhere.
    """
    folder = folder.resolve()  # mkdocs takes relative paths from where its settings are
    if not SETTINGS.exists():
        raise UserError("the documents are not here: run docs from a checkout of gradbed")
    if Path.cwd().is_relative_to(folder):
        raise UserError(f"you are in {folder}: name another folder, such as results/docs")
    if folder.exists() and not _is_ours(folder):
        raise UserError(f"{folder} holds something else: name a folder that is empty or not there yet")
    first_made = next((each for each in reversed(folder.parents) if not each.exists()), folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with scratch_folder("docs", folder.parent) as scratch:
            made = scratch / "site"
            _run_mkdocs(made)
            (made / MARK).write_text(
                "Made by gradbed docs, which replaces this folder as a whole.\n", encoding="utf-8"
            )
            if folder.exists():
                os.replace(folder, scratch / "before")
            os.replace(made, folder)
        if person := caller():
            person.own(first_made)
    except OSError as error:
        if error.errno is None or error.filename is None:
            raise
        raise UserError(f"cannot make {folder}: {error.strerror}") from error


def _is_ours(folder: Path) -> bool:
    """Return whether a folder is empty or holds a site; runs of a study called docs are no site."""
    if not folder.is_dir():
        return False
    return not any(folder.iterdir()) or ((folder / MARK).exists() and not any(folder.glob("*/study.json")))


def _package(scratch: Path) -> Path:
    """Make a folder by the name of the package with all its modules, and return where that lies.

    griffe, which reads it, finds a package by its folder, and the folder of gradbed is called api here.
    """
    package = scratch / "gradbed"
    shutil.copytree(ROOT / "api", package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FOLDERS:
        (package / name).symlink_to(ROOT / name)
    return scratch


def _run_mkdocs(site: Path) -> None:
    """Run mkdocs build --strict, with its complaints as one UserError."""
    # Said before the theme is imported, which would print an advertisement.
    os.environ.setdefault("NO_MKDOCS_2_WARNING", "1")
    from mkdocs.commands.build import build as build_site
    from mkdocs.config import load_config
    from mkdocs.exceptions import MkDocsException

    heard = _Heard()
    logger = logging.getLogger("mkdocs")
    logger.addHandler(heard)
    try:
        config = load_config(str(SETTINGS), site_dir=str(site), strict=True)
        config.plugins["mkdocstrings"].config.handlers["python"]["paths"] = [str(_package(site.parent))]
        build_site(config)
    except MkDocsException as error:
        shutil.rmtree(site, ignore_errors=True)
        raise UserError("; ".join(heard.complaints) or str(error)) from error
    finally:
        logger.removeHandler(heard)


class _Heard(logging.Handler):
    """A logging handler that collects the warnings of MkDocs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.complaints: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.complaints.append(" ".join(record.getMessage().split()))
