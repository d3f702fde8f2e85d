"""A simulated Ollama server with the API, log, environment and quirks of the real one, and faults
on demand.

A fleet has many server processes and each pays for its imports, so only light modules of the
standard library are used. Imports inside the package are relative, because a copy of it is
installed on the simulated machines."""
