"""`python -m fleetctl` is the same as `fleetctl`."""

import gc

# Collections during the imports would take a fifth of the start-up time; `run.run` enables them.
gc.disable()

from fleetctl.cli import main  # noqa: E402

if __name__ == "__main__":
    main()
