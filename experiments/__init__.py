"""What is asked: configurations, runs, measurements, figures."""
