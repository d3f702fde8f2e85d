"""The tools of simulated machines. They refuse and record everything that is not simulated."""
