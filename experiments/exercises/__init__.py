"""Exercises for courses: what one is, how a solution is checked, and how a class is graded."""
