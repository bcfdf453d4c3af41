"""An EPUB 3 of chapters: a zip of XHTML with a list of its files and a table of contents."""

from html import escape
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

_HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
_HTML = '<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" xml:lang="en" lang="en">'
_CONTAINER = (
    f'{_HEAD}<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="book/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
_KINDS = {"png": "image/png", "svg": "image/svg+xml", "jpg": "image/jpeg", "css": "text/css"}


def file_of(name: str) -> str:
    """The file of a page in the book.

    >>> file_of("notebooks/1-scaling-compute/memory-walls.html")
    'notebooks-1-scaling-compute-memory-walls.xhtml'
    """
    return name.removesuffix(".html").replace("/", "-") + ".xhtml"


def page(title: str, body: str) -> str:
    """An XHTML page."""
    link = '<link rel="stylesheet" type="text/css" href="ebook.css"/>'
    return f"{_HEAD}<!DOCTYPE html>\n{_HTML}<head><title>{escape(title)}</title>{link}</head><body>{body}</body></html>"


def contents(chapters) -> str:
    """The table of contents: parts, and the chapters of each."""
    parts = {}
    for x in chapters:
        parts.setdefault(x.part, []).append(f'<li><a href="{file_of(x.name)}">{escape(x.title)}</a></li>')
    first, *rest = parts.items()
    items = "".join(first[1]) if not first[0] else ""
    for part, own in rest if items else [first, *rest]:
        items += f"<li><span>{escape(part)}</span><ol>{''.join(own)}</ol></li>"
    return page("Contents", f'<nav epub:type="toc"><h1>Contents</h1><ol>{items}</ol></nav>')


def listing(chapters, images, title: str, about: str) -> str:
    """The package document: what the book is, its files, and the order in which they are read."""
    files = [("nav.xhtml", "application/xhtml+xml", ' properties="nav"'), ("ebook.css", "text/css", "")]
    for x in chapters:
        has = [n for n, mark in (("mathml", "<math"), ("svg", "<svg")) if mark in x.text]
        properties = f' properties="{" ".join(has)}"' if has else ""
        files.append((file_of(x.name), "application/xhtml+xml", properties))
    files += [(f"images/{x}", _KINDS[x.rsplit(".", 1)[-1]], "") for x in images]
    items = "".join(f'<item id="f{i}" href="{x}" media-type="{y}"{z}/>' for i, (x, y, z) in enumerate(files))
    order = "".join(f'<itemref idref="f{i}"/>' for i, x in enumerate(files) if x[1].endswith("xhtml+xml"))
    return (
        f'{_HEAD}<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:identifier id="id">urn:scalebook</dc:identifier>'
        f"<dc:title>{escape(title)}</dc:title><dc:description>{escape(about)}</dc:description><dc:language>en"
        "</dc:language><dc:creator>the scalebook authors</dc:creator>"
        '<meta property="dcterms:modified">2026-01-01T00:00:00Z</meta></metadata>'
        f"<manifest>{items}</manifest><spine>{order}</spine></package>"
    )


def write(chapters, path: Path, title: str, about: str, style: str) -> None:
    """Write an EPUB of chapters: each has a `part`, `name`, `title`, `text` (XHTML) and `pictures` (bytes by name)."""
    images = {name: data for x in chapters for name, data in x.pictures.items()}
    files = {"META-INF/container.xml": _CONTAINER, "book/book.opf": listing(chapters, images, title, about)}
    files |= {"book/nav.xhtml": contents(chapters), "book/ebook.css": style}
    files |= {f"book/{file_of(x.name)}": page(x.title, x.text) for x in chapters}
    files |= {f"book/images/{name}": data for name, data in images.items()}
    with ZipFile(path, "w", ZIP_DEFLATED) as made:
        made.writestr(ZipInfo("mimetype"), "application/epub+zip", ZIP_STORED)  # first, and as it is
        for name, data in files.items():
            made.writestr(ZipInfo(name), data, ZIP_DEFLATED)  # of the year that zip begins with
