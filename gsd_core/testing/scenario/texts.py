"""The other files of the product: templates, filled in by ``Product``."""

README = """# $heading

Keeps entries by topic ($listed), one line of plain text each.

$usage## Develop

Run the tests with `python3 -m unittest`; nothing has to be installed.
"""

USAGE = """## Usage

```python
from $package.entries import parse
from $package.listing import listing

print(*listing([parse("$first: $sample")]), sep="\\n")
```

"""

USAGE_STORE = """## Usage

```python
from $package.entries import parse
from $package.store import save

save("$package.txt", [parse("$first: $sample")])
```

Each line of the file is one entry.

"""

COMMANDS = """## Command line

```console
$$ python3 -m $package add "$first: $sample"
$$ python3 -m $package list
```

The entries are kept in `$package.txt`; `--file` names another file.

"""

LICENSE = """Zero-Clause BSD

Permission to use, copy, modify, and/or distribute this software for any purpose
with or without fee is hereby granted.

The software is provided "as is", and the author disclaims all warranties.
"""
