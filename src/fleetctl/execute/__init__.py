"""Changing nodes: the transaction of one, the roll-out over many, and how both are ended early."""
