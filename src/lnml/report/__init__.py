"""Results as tables, pictures and pages for people to read."""
