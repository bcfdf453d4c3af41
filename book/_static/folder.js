// Opened from a folder, a page may not read other pages: search then lists titles without excerpts.
if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
