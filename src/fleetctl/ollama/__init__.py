"""Ollama's HTTP API, over whatever stream a link gives."""
