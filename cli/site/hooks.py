"""What MkDocs is told besides mkdocs.yml: the documents are the same Markdown on a forge and on the site.

On a forge a link of a document leads into the tree (../p4src/aggregation.p4), and a path is only `named`. On the site
both lead to a page that shows the source; CONTRIBUTING.md, which lies outside docs/, is a page, too, and so is what
the docstrings of `import gradbed` say (mkdocstrings).
"""

from __future__ import annotations

import ast
import posixpath
import re
from typing import Any

from gradbed.cli.site.sources import ROOT, page_of, source_of, sources_named

OUTSIDE = {"CONTRIBUTING.md": "contributing.md", "LICENSE": "license.md"}
"""Files of the top that are pages of the site."""
REFERENCE = "reference.md"
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
    wanted = set()
    for file in files.documentation_pages():
        text = file.content_string
        wanted |= {*sources_named(text), *_sources_linked(text, file.src_uri)}
    for source in sorted(wanted):
        files.append(File.generated(config, _page(source), content=page_of(source)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links that leave docs/ lead to pages of the site; those to a folder of the tree are words only."""

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
    """The public names of the package, each by its docstring, which is read, not imported."""
    tree = ast.parse((ROOT / "api" / "__init__.py").read_text(encoding="utf-8"))
    [names] = (
        ast.literal_eval(each.value)
        for each in tree.body
        if isinstance(each, ast.Assign) and getattr(each.targets[0], "id", "") == "__all__"
    )
    parts = ["# Python reference\n\n[Python: import gradbed](api.md) tells how these are used together.\n"]
    for name in (name for name in names if not name.startswith("_")):
        options = f"{{heading: gradbed.{name}, toc_label: {name}, heading_level: 2}}"
        parts.append(f"::: gradbed.{name}\n    options: {options}\n")
    return "\n".join(parts)


def _page(source: str) -> str:
    return f"source/{source}.md"


def _sources_linked(markdown: str, where: str) -> set[str]:
    found = (_from_top(target, where) for _text, target, _anchor in LINK.findall(markdown))
    return {source for path in found if path and (source := source_of(path))}


def _from_top(target: str, where: str) -> str | None:
    """What a page of the site links to, by its path from the top of the checkout. None: that is elsewhere."""
    if "://" in target or target.startswith("/"):
        return None
    folder = "" if where in OUTSIDE.values() else "docs"
    return posixpath.normpath(posixpath.join(folder, target))


def _target(target: str, where: str) -> str | None:
    """The same link from a page of the site; those that stay in docs/ as they are. None: there is no such page."""
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
