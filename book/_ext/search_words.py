"""The index of the site's search: prose only, without code, TeX and the letters of figures, each word stemmed once."""

from functools import cache, wraps

from docutils import nodes
from sphinx.search import IndexBuilder
from sphinx.search.en import SearchEnglish


class English(SearchEnglish):
    def init(self, options):
        super().init(options)
        self.stem = cache(super().stem)


def unread(node) -> bool:
    """Whether a reader who searches for words does not mean this: code, TeX, and the words of a figure."""
    code = isinstance(node, (nodes.literal_block, nodes.math, nodes.math_block))
    return code or (isinstance(node, nodes.raw) and "<svg" in node.astext())


def prose(collect):
    """Collect the words of a page as Sphinx does, while what is not prose is out of its sight."""

    def words(self, doctree):
        hidden = [(node, node.children) for node in doctree.findall(unread)]
        for node, _ in hidden:
            node.children = []
        try:
            return collect(self, doctree)
        finally:
            for node, children in hidden:
                node.children = children

    return words


def own_script(app, name, template, context, doctree):
    if name == "search":
        app.add_js_file("excerpts.js", loading_method="defer")


def setup(app):
    if not hasattr(IndexBuilder._word_collector, "__wrapped__"):
        IndexBuilder._word_collector = wraps(IndexBuilder._word_collector)(prose(IndexBuilder._word_collector))
    app.add_search_language(English)
    app.connect("html-page-context", own_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
