"""A simulated systemd, version 252: unit files parsed by its rules, services as real processes."""
