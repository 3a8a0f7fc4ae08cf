"""Choose the switches that sum a job's gradients."""
