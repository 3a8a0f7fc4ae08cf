"""Graph and demand in, plan out. Pure: nothing here needs root or talks to a switch."""
