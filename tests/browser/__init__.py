"""Pages in a real browser, where one is installed."""
