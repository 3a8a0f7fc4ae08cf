"""The journal and the terms of controllers, stopped at every system call."""
