"""What a run leaves: its folder, the files of its trials, and what figures and tables read of them."""
