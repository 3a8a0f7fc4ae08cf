"""The live view: a page that shows a network while it runs, and the recording that shows it again afterwards."""
