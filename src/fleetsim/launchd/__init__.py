"""A simulated launchd: domains, jobs, and the output of `launchctl`."""
