"""A simulated launchd: domains, jobs and what `launchctl` can ask of them."""
