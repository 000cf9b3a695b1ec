"""GSD's planning files: read, edit, render and check them."""
