"""SSH keys of simulated machines and of their clients."""

import base64
import hashlib
from pathlib import Path

import paramiko
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


def make_key(path: Path) -> paramiko.Ed25519Key:
    """Read the key in this file, made if missing; the public half is beside it."""
    if not path.exists():
        private = Ed25519PrivateKey.generate().private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.OpenSSH,
            serialization.NoEncryption(),
        )
        path.touch(mode=0o600)
        path.write_bytes(private)
        path.with_suffix(".pub").write_text(public_line(paramiko.Ed25519Key(filename=str(path))))
    return paramiko.Ed25519Key(filename=str(path))


def public_line(key: paramiko.PKey) -> str:
    return f"{key.get_name()} {key.get_base64()}\n"


def fingerprint(key: paramiko.PKey) -> str:
    digest = hashlib.sha256(key.asbytes()).digest()
    return "SHA256:" + base64.b64encode(digest).decode().rstrip("=")
