"""Folds for readers: what the journal's facts say, as values to show or to write down; pure."""
