"""From a YAML file to a Fleet, or to a list of everything that is wrong with the file."""
