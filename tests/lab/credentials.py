"""The keys of the lab: SSH keys of its users, the test CA, the registry's certificate."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.lab.cache import made
from tests.lab.command import run

REGISTRY_NAME = "registry.ollama.ai"


def credentials() -> Path:
    """A folder with `user`, `observer` (and .pub), `ca.pem`, and `registry.pem` with its key.

    Tests observe a node as `observer`, who is root there, with a key that fleetctl does not
    have."""
    return made("credentials", Path(__file__).read_text(), build)


def build(folder: Path) -> None:
    folder.parent.chmod(0o700)
    for name in ("user", "observer"):
        make_ssh_key(folder / name)
    ca_key, ca = make_ca()
    key, certificate = make_registry_certificate(ca_key, ca)
    (folder / "ca.pem").write_bytes(pem(ca))
    (folder / "registry.pem").write_bytes(pem(certificate) + private_pem(key))


def make_ssh_key(path: Path, kind: str = "ed25519") -> None:
    run("ssh-keygen", "-q", "-t", kind, "-N", "", "-C", f"{path.name}@lab", "-f", path)


def make_ca() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "fleetctl lab test CA")])
    only_ca = x509.BasicConstraints(ca=True, path_length=0)
    return key, unsigned(name, name, key).add_extension(only_ca, critical=True).sign(
        key, hashes.SHA256()
    )


def make_registry_certificate(
    ca_key: ec.EllipticCurvePrivateKey, ca: x509.Certificate
) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, REGISTRY_NAME)])
    names = x509.SubjectAlternativeName([x509.DNSName(REGISTRY_NAME)])
    return key, unsigned(name, ca.subject, key).add_extension(names, critical=False).sign(
        ca_key, hashes.SHA256()
    )


def unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=3650))
    )


def pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def private_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
