"""The controller's part of the coded shuffle: who sends which coded packets along which trees."""
