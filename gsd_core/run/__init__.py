"""A run: from what the user asks for to how it ended."""
