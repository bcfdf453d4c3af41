"""The parts of the book and their chapters, for the sidebar (book/_templates) of every page."""

from html import escape


def give(app, name, template, context, doctree):
    titles = app.env.titles
    context["parts"] = [
        (escape(part.caption), [(page, escape(titles[page].astext())) for page in part.items])
        for part in app.env.external_site_map.root.subtrees
    ]


def setup(app):
    app.connect("html-page-context", give, priority=100)  # the theme renders its sidebar at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
