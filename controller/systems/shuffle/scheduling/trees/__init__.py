"""The trees that coded packets take, as sets of links."""
