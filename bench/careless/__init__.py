"""Measure how many careless agents get a false "verified", and how many honest ones are sent back."""
