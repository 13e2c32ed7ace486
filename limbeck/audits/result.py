"""What an audit found: `Audit`, and the file that it is kept in, `audit.json`."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from ..errors import LimbeckError

FORMAT = "limbeck audit"
VERSION = 1


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What one part of an audit found."""

    part: str
    """replay, noise, draws, one run, release."""
    holds: bool
    """Whether nothing was found that contradicts the claim."""
    says: str
    """In words."""
    claim: float | None = None
    """Epsilon that is claimed, at `delta`."""
    bound: float | None = None
    """Epsilon that is certainly spent, at `delta` and with `confidence`."""
    delta: float | None = None
    confidence: float | None = None
    tight: bool = False
    """Whether the worst case was built for everything that is asked, so that the bound should be near
    the claim."""
    runs: int = 0
    seconds: float = 0.0
    broken: tuple[str, ...] = ()
    """What contradicts the claim, in words."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Figures of this part."""

    @property
    def share(self) -> float | None:
        """The bound as a part of the claim."""
        return None if self.bound is None or not self.claim else self.bound / self.claim


@dataclass(frozen=True, kw_only=True)
class Audit:
    """All findings about a method with its settings, or about what a release claims.

    `facts()` is what `audit.json` holds.
    """

    method: str
    settings: Mapping[str, Any]
    epsilon: float
    delta: float
    adjacency: str
    unit: str
    dataset: str
    findings: tuple[Finding, ...]
    release: str | None = None
    """SHA-256 of the certificate of the release that was audited."""
    software: str = ""

    @property
    def holds(self) -> bool:
        """Whether no part found anything against the claim."""
        return all(finding.holds for finding in self.findings)

    @property
    def seconds(self) -> float:
        return sum(finding.seconds for finding in self.findings)

    def finding(self, part: str) -> Finding | None:
        return next((f for f in self.findings if f.part == part), None)

    def facts(self) -> dict[str, Any]:
        """Plain data."""
        held = asdict(self) | {"findings": [asdict(f) for f in self.findings]}
        return {"format": FORMAT, "version": VERSION, "holds": self.holds, **_plain(held)}

    def save(self, path: str | Path) -> None:
        """Write the findings as JSON."""
        text = json.dumps(self.facts(), indent=2, ensure_ascii=False, allow_nan=False)
        try:
            Path(path).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise LimbeckError(f"Cannot write {path}: {error.strerror}.") from None

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read the findings of an audit."""
        try:
            held = json.loads(Path(path).read_text(encoding="utf-8"))
            if held["format"] != FORMAT or held["version"] != VERSION:
                raise ValueError("another format")
            findings = [Finding(**{**f, "broken": tuple(f["broken"])}) for f in held["findings"]]
            rest = {k: v for k, v in held.items() if k not in ("format", "version", "holds")}
            return cls(**(rest | {"findings": tuple(findings)}))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise LimbeckError(f"{path} holds no audit of this version: {error}.") from None


def _plain(value: Any) -> Any:
    """Numbers that JSON knows."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | type(None)) else str(value)
