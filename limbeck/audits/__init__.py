"""Audits: attacks on limbeck's own claims, on made-up rows, that anyone can run."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .auditing import audit as audit
    from .result import Audit as Audit
    from .result import Finding as Finding
else:
    __getattr__, __dir__ = lazily(__name__, {"auditing": "audit", "result": "Audit Finding"})
