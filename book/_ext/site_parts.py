"""The parts of the book and their chapters, for the sidebar (book/_templates) of every page; and what names a fold."""

from html import escape


def below(site_map, page: str) -> list[str]:
    """The pages that a page of the contents heads."""
    return [x for part in site_map[page].subtrees for x in part.items]


def give(app, name, template, context, doctree):
    site_map, titles = app.env.external_site_map, app.env.titles

    def named(page):
        return page, escape(titles[page].astext())

    def chapter(page):
        pages = below(site_map, page)
        return *named(page), [named(x) for x in pages] if name in (page, *pages) else []

    if body := context.get("body"):  # a fold is called what stands on it, for who listens too
        context["body"] = body.replace(' aria-label="Toggle hidden content"', "")
    context["parts"] = [(escape(part.caption), [chapter(x) for x in part.items]) for part in site_map.root.subtrees]


def setup(app):
    app.connect("html-page-context", give, priority=100)  # the theme renders its sidebar at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
