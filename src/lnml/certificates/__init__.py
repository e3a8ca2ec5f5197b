"""Proofs of optimality that can be stored and checked by others (docs/certificates.md)."""

from lnml.certificates.certificate import Certificate
from lnml.certificates.verify import Verification, verify

__all__ = ["Certificate", "Verification", "verify"]
