"""BMv2 JSON as values: expressions, the model of a program, and its loader."""
