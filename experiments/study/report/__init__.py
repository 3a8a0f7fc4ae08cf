"""What a run found as one page: report.html in its folder, and index.html over all runs of a results folder."""
