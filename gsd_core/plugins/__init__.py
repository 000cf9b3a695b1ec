"""Everything between the core and its plugins: finding, loading, checking and calling them."""
