"""Where all private randomness comes from: a ChaCha20 key stream under a secret of the run.

Every use has a purpose, a text, from which its own key is derived; asking twice for the same is
refused, so no noise can serve two measurements. The secret holds 256 bits of operating-system entropy
unless the caller seeds the run, which the certificate then says.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms


class Stream:
    """An endless row of random words, the same for the same secret and purpose."""

    def __init__(self, secret: bytes, purpose: str) -> None:
        key = hashlib.blake2b(purpose.encode(), key=secret, digest_size=32).digest()
        self._cipher = Cipher(algorithms.ChaCha20(key, bytes(16)), mode=None).encryptor()

    def words(self, count: int) -> np.ndarray:
        """`count` uniform 64-bit words."""
        return np.frombuffer(self._cipher.update(bytes(8 * count)), dtype=np.uint64)

    def below(self, limit: int) -> int:
        """One uniform integer in [0, limit), exact for any limit."""
        size = (limit.bit_length() + 7) // 8
        spare = 8 * size - limit.bit_length()
        while True:
            value = int.from_bytes(self._cipher.update(bytes(size)), "little") >> spare
            if value < limit:
                return value


@dataclass(kw_only=True)
class Noise:
    """The randomness of one run. `law=True` is for tests: `Private` then answers with its noise alone
    (the data times zero), so a release must not depend on the rows in any byte."""

    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)
    seeded: bool = False
    law: bool = False
    _used: set[str] = field(default_factory=set, repr=False)

    @classmethod
    def from_seed(cls, seed: int, *, law: bool = False) -> Noise:
        """Reproducible noise. A release made with it is stamped: not for release."""
        secret = hashlib.blake2b(b"limbeck seed %d" % seed, digest_size=32).digest()
        return cls(secret=secret, seeded=True, law=law)

    def stream(self, purpose: str) -> Stream:
        """The stream of a purpose; a second one for the same purpose is refused."""
        self._use(purpose)
        return Stream(self.secret, purpose)

    def _use(self, purpose: str) -> None:
        if purpose in self._used:
            raise RuntimeError(f"noise for '{purpose}' was drawn before and cannot be drawn again")
        self._used.add(purpose)

    def part(self, name: str) -> Noise:
        """The randomness of a run within this one, independent of all other parts."""
        self._use(f"part {name}")
        secret = hashlib.blake2b(b"part " + name.encode(), key=self.secret, digest_size=32).digest()
        return Noise(secret=secret, seeded=self.seeded, law=self.law)

    def public_seed(self, purpose: str) -> int:
        """A seed for post-processing (initial networks, latent codes): independent of the noise."""
        digest = hashlib.blake2b(b"public " + purpose.encode(), key=self.secret, digest_size=4)
        return int.from_bytes(digest.digest(), "little") >> 1
