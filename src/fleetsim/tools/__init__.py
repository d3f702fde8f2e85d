"""The strict tools of a simulated machine: what they do not know, they refuse and record."""
