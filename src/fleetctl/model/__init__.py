"""The frozen values that every other room speaks, and the tables of facts about Ollama."""
