"""How good schedules are, and how long making them takes."""
