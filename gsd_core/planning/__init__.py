"""GSD's planning files: one module for each file of ``.planning/`` reads, edits and renders it."""
