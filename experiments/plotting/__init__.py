"""What all figures share: style, intervals, marks of degraded trials, files."""
