"""How far to trust predictions: the record of errors, spreads of intervals, and what chapters ask of measured rows."""
