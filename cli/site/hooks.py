"""Hooks of MkDocs (mkdocs.yml): the documents are the same Markdown on a forge and on the site.

On a forge a link of a document leads into the tree (../p4src/aggregation.p4), and a path is only `named`. On the site
both lead to a page that shows the source; CONTRIBUTING.md, which lies outside docs/, is a page, too, and so are the
docstrings of `import gradbed` and of `gradbed.plugin` (mkdocstrings).
"""

from __future__ import annotations

import ast
import posixpath
import re
from typing import Any

from gradbed.cli.site.sources import ROOT, page_of, source_of, sources_named
from gradbed.common.modules import homes_of

OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "LICENSE": "license.md"}
"""Files of the top that are pages of the site."""
REFERENCE, PLUGIN_REFERENCE = "reference.md", "plugin_reference.md"
"""Pages made of docstrings: for users of the package, and for authors of plug-ins."""
TORCH_HOOK = ("available", "register")
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
CODE = re.compile(r"<code>([^<>]+)</code>")
KEPT = re.compile(r"(<pre.*?</pre>|<a .*?</a>|<h\d.*?</h\d>)", re.DOTALL)
"""Of a page's HTML: code in these is no link."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made: files of the top, and sources that a page names or links to."""
    from mkdocs.structure.files import File

    for name, page in OUTSIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        content = text if name.endswith(".md") else f"# Licence\n\n```text\n{text}```\n"
        files.append(File.generated(config, page, content=content))
    files.append(File.generated(config, REFERENCE, content=_reference()))
    files.append(File.generated(config, PLUGIN_REFERENCE, content=_plugin_reference()))
    wanted = set()
    for file in files.documentation_pages():
        text = file.content_string
        wanted |= {*sources_named(text), *_sources_linked(text, file.src_uri)}
    for source in sorted(wanted):
        files.append(File.generated(config, _page(source), content=page_of(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Turn links that leave docs/ into links to pages of the site, and those to a folder into plain text."""

    def led(link: re.Match[str]) -> str:
        target = _target(link[2], page.file.src_uri)
        return link[1] if target is None else f"[{link[1]}]({target}{link[3] or ''})"

    return markdown if page.file.src_uri.startswith("source/") else LINK.sub(led, markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Link sources that are named in `code` to the pages that show them, and allow line breaks after slashes.

    Paths are often wider than the column of a table.
    """

    def linked(code: re.Match[str]) -> str:
        source = source_of(code[1])
        file = files.get_file_from_path(_page(source)) if source else None
        shown = code[0] if code[1].startswith("/") else f"<code>{code[1].replace('/', '/<wbr>')}</code>"
        return shown if file is None else f'<a href="{file.url_relative_to(page.file)}">{shown}</a>'

    if page.file.src_uri.startswith("source/"):
        return html
    parts = KEPT.split(html)
    return "".join(part if index % 2 else CODE.sub(linked, part) for index, part in enumerate(parts))


def _reference() -> str:
    """Return the page of the package's public names, each with its docstring."""
    names = _constant("api/__init__.py", "__all__")
    parts = ["# Python reference\n\n[Python: import gradbed](api.md) tells how these are used together.\n"]
    parts += [_entry(f"gradbed.{name}", f"gradbed.{name}") for name in names if not name.startswith("_")]
    return "\n".join(parts)


def _plugin_reference() -> str:
    """Return the page of what authors of plug-ins use: every name of gradbed.plugin, and gradbed.torch_hook."""
    homes = homes_of(_constant("api/plugin.py", "_MODULES"))
    parts = [
        "# Plug-in reference\n\n[Plug-ins](plugins.md) tells how these are used together; all but the last are names "
        "of `gradbed.plugin`.\n"
    ]
    parts += [
        _entry(f"gradbed.plugin.{name}", f"{homes[name]}.{name}", True) for name in sorted(homes, key=str.lower)
    ]
    parts += [_entry(f"gradbed.torch_hook.{name}", f"gradbed.hosts.torch_hook.{name}") for name in TORCH_HOOK]
    return "\n".join(parts)


def _entry(shown: str, place: str, every_member: bool = False) -> str:
    """Return the Markdown for one name. Docstrings are read, the modules are not imported.

    Args:
        shown: What the page calls it.
        place: Where it is defined.
        every_member: Whether to show public members without a docstring, too, with their types.
    """
    members = f"show_if_no_docstring: {str(every_member).lower()}"
    options = f"{{heading: {shown}, toc_label: {shown.rpartition('.')[2]}, heading_level: 2, {members}}}"
    return f"::: {place}\n    options: {options}\n"


def _constant(file: str, name: str) -> Any:
    """Return a constant of a module, which is read, not imported."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    [value] = (
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") == name
    )
    return value


def _page(source: str) -> str:
    return f"source/{source}.md"


def _sources_linked(markdown: str, where: str) -> set[str]:
    found = (_from_top(target, where) for _text, target, _anchor in LINK.findall(markdown))
    return {source for path in found if path and (source := source_of(path))}


def _from_top(target: str, where: str) -> str | None:
    """Return the target of a link by its path from the top of the checkout; None if it is elsewhere."""
    if "://" in target or target.startswith("/"):
        return None
    folder = "" if where in OUTSIDE.values() else "docs"
    return posixpath.normpath(posixpath.join(folder, target))


def _target(target: str, where: str) -> str | None:
    """Return the target of a link on the site, where links within docs/ stay as they are; None if it has no page."""
    path = _from_top(target, where)
    if path is None:
        return target
    if source := source_of(path):
        return _page(source)
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path == "README.md":
        return "index.md"
    if not path.startswith("docs/") and (ROOT / path).is_dir():
        return None
    # Of a file of the top, whose links name docs/.
    return path.removeprefix("docs/") if where in OUTSIDE.values() and path.startswith("docs/") else target
