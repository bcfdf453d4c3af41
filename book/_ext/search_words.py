"""The index of the site's search stems each word once, and not once on each page that says it."""

from functools import cache

from sphinx.search.en import SearchEnglish


class English(SearchEnglish):
    def init(self, options):
        super().init(options)
        self.stem = cache(super().stem)


def setup(app):
    app.add_search_language(English)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
