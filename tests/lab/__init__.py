"""The lab: real Debian machines in containers, the real Ollama and a stand-in model registry.

Tests and `python -m tests.lab` use it; the product never imports it.
"""
