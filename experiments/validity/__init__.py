"""Was the machine fast enough for what it emulated? What is measured, and what that says about a run."""
