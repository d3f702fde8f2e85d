"""The simulated Mac: everything around its launchd."""

from pathlib import Path

REPORT = Path(__file__).with_name("report.sh")
"""For a real Mac: prints what confirms or refutes docs/macos.md, and changes nothing."""
