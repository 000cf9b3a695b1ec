"""The journal: an append-only file of facts, an inbox for other processes, and the project's lock."""
