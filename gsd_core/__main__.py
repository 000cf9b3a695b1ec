"""``python -m gsd_core`` is ``gsd``."""

from gsd_core.cli import main

if __name__ == "__main__":
    main()
