"""Findings that are not differences: what no file would mend."""
