"""A simulated Ollama server: API, log, environment and quirks of the real one; faults on demand.

Every process start pays for its imports, and a fleet is many processes: only light modules of the
standard library are used here. Imports inside the package are relative, because a copy of it is
what gets installed on a simulated machine."""
