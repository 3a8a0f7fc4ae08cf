"""Commands that show what systems do."""
