"""What is published: data, certificate, card; and how both are checked."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .arithmetic import accounting as accounting
    from .arithmetic import recompute as recompute
    from .card import citations as citations
    from .card import rule_sentences as rule_sentences
    from .certificate import certificate_digest as certificate_digest
    from .certificate import check_before_publishing as check_before_publishing
    from .certificate import make_certificate as make_certificate
    from .certificate import redistilled as redistilled
    from .drawing import Drawn as Drawn
    from .drawing import draw as draw
    from .drawing import drawn as drawn
    from .folder import check_target as check_target
    from .images import Images as Images
    from .model import MODEL_LIMITS as MODEL_LIMITS
    from .model import Model as Model
    from .model import load as load
    from .questions import check_questions as check_questions
    from .release import Release as Release
    from .schema_check import schema_check_section as schema_check_section
    from .second_opinion import attack_delta as attack_delta
    from .second_opinion import exact_epsilon as exact_epsilon
    from .verdict import Verdict as Verdict
    from .verdict import verify as verify
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "card": "citations rule_sentences",
            "certificate": "certificate_digest check_before_publishing make_certificate redistilled",
            "questions": "check_questions",
            "folder": "check_target",
            "images": "Images",
            "model": "MODEL_LIMITS Model load",
            "drawing": "Drawn draw drawn",
            "release": "Release",
            "second_opinion": "attack_delta exact_epsilon",
            "schema_check": "schema_check_section",
            "verdict": "Verdict verify",
            "arithmetic": "accounting recompute",
        },
    )
