from scalebook.language.row import as_rows
def tier_rows(tiers, knowns): return ()
