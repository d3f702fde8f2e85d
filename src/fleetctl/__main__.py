"""`python -m fleetctl` is the same as `fleetctl`."""

from fleetctl.cli import main

if __name__ == "__main__":
    main()
