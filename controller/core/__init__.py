"""Services, jobs and the plan of them all: the controller without its process and its interfaces."""
