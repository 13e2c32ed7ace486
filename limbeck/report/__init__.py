"""The page that shows a release."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .charts import Point as Point
    from .charts import curve as curve
    from .charts import histogram as histogram
    from .charts import score_bar as score_bar
    from .compared import folder_names as folder_names
    from .report import make_report as make_report
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "charts": "Point curve histogram score_bar",
            "compared": "folder_names",
            "report": "make_report",
        },
    )
