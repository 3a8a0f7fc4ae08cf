"""What a run leaves: its folder, the files of its points, and what figures and tables read of them."""
