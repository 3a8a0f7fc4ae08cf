"""A page as a reader of HTML sees it, for tests: tables, links, headings, text."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "img", "br", "hr", "link", "input"}


@dataclass
class Table:
    caption: str = ""
    rows: list[list[str]] = field(default_factory=list)

    def column(self, title: str) -> list[str]:
        place = self.rows[0].index(title)
        return [row[place] for row in self.rows[1:]]


class HtmlPage(HTMLParser):
    """Whatever elements are open must be closed in turn: AssertionError."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tables: list[Table] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.headings: list[tuple[int, str]] = []
        self.ids: list[str] = []
        self.classes: list[str] = []
        self.titles: list[str] = []
        self.open: list[str] = []
        self.scripts = 0
        self._text: list[str] = []
        self._into: list[list[str]] = []
        self.feed(text)
        assert self.open == [], self.open

    @classmethod
    def of(cls, path: Path) -> HtmlPage:
        return cls(path.read_text(encoding="utf-8"))

    @property
    def text(self) -> str:
        return " ".join(" ".join(self._text).split())

    def table(self, caption: str) -> Table:
        (found,) = [table for table in self.tables if table.caption == caption]
        return found

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        assert not any(name.startswith("on") for name in given), given
        if tag not in VOID:
            self.open.append(tag)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        self.scripts += tag == "script"
        if "src" in given:
            self.sources.append(given["src"])
        if tag == "table":
            self.tables.append(Table())
        if tag == "tr":
            self.tables[-1].rows.append([])
        if tag == "path" and "class" in given:
            self.classes.append(given["class"])
        if tag in ("td", "th", "caption", "h1", "h2", "h3", "h4", "title"):
            self._into.append([])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())
        if tag not in ("td", "th", "caption", "h1", "h2", "h3", "h4", "title"):
            return
        text = " ".join("".join(self._into.pop()).split())
        if tag in ("td", "th"):
            self.tables[-1].rows[-1].append(text)
        elif tag == "caption":
            self.tables[-1].caption = text
        elif tag == "title":
            self.titles.append(text)
        else:
            self.headings.append((int(tag[1]), text))

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self._text.append(data)
        for into in self._into[-1:]:
            into.append(data)
