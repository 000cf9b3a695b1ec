"""Everything between the core and its plugins: discovery, loading, validation, calling and isolation."""
