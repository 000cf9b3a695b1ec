"""What is done and what is due: pure functions of the journal's facts. No clock, no I/O."""
