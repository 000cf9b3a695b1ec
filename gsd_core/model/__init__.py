"""The values that cross the boundary between the core and its plugins."""
