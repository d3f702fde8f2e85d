"""A simulated systemd (version 252): unit files as it reads them, services that really run."""
