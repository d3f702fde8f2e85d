"""All that people and programs get to read: one module an output format. Nobody else prints."""
