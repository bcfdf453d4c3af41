"""Files of the site beside its pages: the map for search engines, a feed of changes, the picture of a shared link, and
the whole of it as an archive that works from disk.
"""

import re
from html import escape
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import matplotlib.pyplot as plt
from landing import live, waiting
from linking import BOOK
from scalebook.book.drawings.figures import COLOURS
from scalebook.book.pages.away import offer

ARCHIVE = "scalebook.zip"
QUESTION = "How much memory, bandwidth, arithmetic and money\ndoes a large language model need?"


def sitemap(base: str, pages) -> str:
    """Every page by its address.

    >>> sitemap("https://a.b/", ["book/index"]).count("<loc>https://a.b/book/index.html</loc>")
    1
    """
    urls = "".join(f"<url><loc>{escape(base + page)}.html</loc></url>\n" for page in sorted(pages))
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0" encoding="utf-8"?>\n<urlset xmlns="{space}">\n{urls}</urlset>\n'


def feed(base: str, changes: str, day: str) -> str:
    """The versions of CHANGELOG.md as an Atom feed; one that is not out yet is of `day`."""
    entries = []
    for version, text in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", changes, flags=re.MULTILINE | re.DOTALL):
        dated = re.search(r"\d{4}-\d{2}-\d{2}", version)
        entries.append(
            f"<entry><title>{escape(version)}</title><id>{escape(base)}#{escape(version.replace(' ', '-'))}</id>"
            f'<link href="{escape(base)}"/><updated>{dated[0] if dated else day}T00:00:00Z</updated>'
            f'<content type="text">{escape(text.strip())}</content></entry>\n'
        )
    return (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom"><title>scalebook</title>'
        f'<id>{escape(base)}</id><link href="{escape(base)}"/><updated>{day}T00:00:00Z</updated>'
        f"<author><name>the scalebook authors</name></author>\n{''.join(entries)}</feed>\n"
    )


def social(path) -> None:
    """What a shared link shows: the question, and the sentence of the landing page with its bar."""
    made = live()
    time, busy = made.texts["token_time"], made.values["compute_time"] / made.values["memory_time"]
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white", layout="none")
    figure.text(0.06, 0.87, "scalebook", size=26, weight="bold", color=COLOURS["arithmetic"][0])
    figure.text(0.06, 0.60, QUESTION, size=30, weight="bold", linespacing=1.4)
    said = f"Llama 3.1 70B in 8 bits on one H100:\na token takes {time}, {waiting(made)} of it waiting for memory."
    figure.text(0.06, 0.30, said, size=24, linespacing=1.5)
    axes = figure.add_axes((0.06, 0.16, 0.88, 0.05))
    axes.barh(0, busy, color=COLOURS["arithmetic"][0])
    axes.barh(0, 1 - busy, left=busy, color=COLOURS["memory"][0])
    axes.set(xlim=(0, 1))
    axes.axis("off")
    figure.savefig(path)
    plt.close(figure)


def archive(site: Path) -> None:
    """The site as a zip beside its pages; the same site is the same bytes.  What pages were made of stays out."""
    files = (x for x in sorted(site.rglob("*")) if x.is_file() and x.suffix != ".zip")
    with ZipFile(site / ARCHIVE, "w", ZIP_DEFLATED, compresslevel=6) as made:
        for file in files:
            name = file.relative_to(site)
            if not {"_sources", ".doctrees"} & set(name.parts):
                about = ZipInfo(f"scalebook/{name.as_posix()}")  # of the year that zip begins with
                about.compress_type = ZIP_DEFLATED
                made.writestr(about, file.read_bytes())


def draw(app, config):
    social(BOOK / "_build" / "assets" / "social.png")


def write(app, error):
    if not error:
        base, day = app.config.html_baseurl, app.config.copyright[:4] + "-01-01"  # a build is the same on every day
        changes = (BOOK.parent / "CHANGELOG.md").read_text("utf-8")
        (app.outdir / "sitemap.xml").write_text(sitemap(base, app.env.found_docs), "utf-8")
        (app.outdir / "changes.xml").write_text(feed(base, changes, day), "utf-8")
        archive(Path(app.outdir))
        offer(Path(app.outdir))


def link_feed(app, name, template, context, doctree):
    at = context["pathto"]("changes.xml", 1)
    link = f'<link rel="alternate" type="application/atom+xml" title="Changes" href="{at}"/>\n'
    context["metatags"] = context.get("metatags", "") + link


def setup(app):
    app.connect("config-inited", draw, priority=900)  # after the folder of assets is made
    app.connect("html-page-context", link_feed)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
