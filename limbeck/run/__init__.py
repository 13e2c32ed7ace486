"""The verbs that ask about rows: distill, redistill, tune, classify; recipes."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .classifying import classify as classify
    from .distilling import distill as distill
    from .distilling import redistill as redistill
    from .recipe import Recipe as Recipe
    from .recipe import make_method as make_method
    from .recipe import packaged_recipes as packaged_recipes
    from .tuning import Near as Near
    from .tuning import Right as Right
    from .tuning import tune as tune
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "classifying": "classify",
            "distilling": "distill redistill",
            "recipe": "Recipe make_method packaged_recipes",
            "tuning": "Near Right tune",
        },
    )
