"""What can be read off a trace: pure functions that know no architecture."""
