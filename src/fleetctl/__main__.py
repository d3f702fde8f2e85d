"""`python -m fleetctl` is the same as `fleetctl`."""

import gc

# A fifth of the time before the first answer would go into looking for garbage that is not there.
gc.disable()

from fleetctl.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
