"""The simulated Mac: what stands around its launchd."""
