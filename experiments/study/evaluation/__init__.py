"""What a study found: tables, figures, comparisons."""
