"""What all figures share: style, intervals, marks of doubtful trials, files."""
