"""What commands and files show, computed from the journal's facts and from ``.planning/``."""
