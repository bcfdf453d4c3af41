"""For the theme's templates (book/_templates): parts and their chapters, what names a fold, and kinds of pages."""

from html import escape

# Pages that the style sheet lays out in another way, by what they hold.  A selector with `:has` would do it too, and
# have the browser style a page anew, all of it, whenever a calculator's curve is drawn.
KINDS = {x: f'class="{x}"' for x in ("sb-wide", "sb-cards", "sb-sentence")} | {"planner": 'id="sb-planner"'}


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
    context["kinds"] = " ".join(f"{kind}-page" for kind, mark in KINDS.items() if mark in context.get("body", ""))
    context["parts"] = [(escape(part.caption), [chapter(x) for x in part.items]) for part in site_map.root.subtrees]


def setup(app):
    app.connect("html-page-context", give, priority=100)  # the theme renders its sidebar at 500
    return {"parallel_read_safe": True, "parallel_write_safe": True}
