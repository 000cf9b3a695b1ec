"""``python -m gsd_core`` is ``gsd``."""

from .cli import main

if __name__ == "__main__":
    main()
