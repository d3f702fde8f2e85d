"""The address that every simulated machine has beside loopback."""

ADDRESS = "192.168.77.10"
