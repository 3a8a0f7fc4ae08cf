"""Trials of training traces and collectives."""
