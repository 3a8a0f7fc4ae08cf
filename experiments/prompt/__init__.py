"""The prompt of `gradbed up`: Mininet's, with commands of our own (docs/prompt.md)."""
