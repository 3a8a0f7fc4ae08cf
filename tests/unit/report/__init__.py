"""The pages of runs: what they say is what the runs' files say."""
