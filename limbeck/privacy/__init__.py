"""The privacy boundary: `Private`, the only holder of rows, the questions it answers, and their noise."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .asked import Asked as Asked
    from .discrete import discrete_gaussian as discrete_gaussian
    from .engine import Work as Work
    from .estimate import OTHER as OTHER
    from .estimate import FrequentValues as FrequentValues
    from .estimate import Quantiles as Quantiles
    from .estimate import Texts as Texts
    from .estimate import estimates as estimates
    from .grid import GridSum as GridSum
    from .grid import clip_rows as clip_rows
    from .laplace import discrete_laplace as discrete_laplace
    from .map_spec import MapSpec as MapSpec
    from .maps import chunk_rows as chunk_rows
    from .maps import evaluated as evaluated
    from .measurement import Measurement as Measurement
    from .noise import Noise as Noise
    from .noise import Stream as Stream
    from .poisson.batch_gradient import BatchGradient as BatchGradient
    from .poisson.ghost_features import FeatureGradients as FeatureGradients
    from .poisson.ghost_features import FeatureSpaceGradients as FeatureSpaceGradients
    from .poisson.ghost_features import PulledGradients as PulledGradients
    from .poisson.ghost_ntk import TangentGradients as TangentGradients
    from .poisson.ghost_plain import PlainGradients as PlainGradients
    from .poisson.gradients import Gradients as Gradients
    from .poisson.row_gradients import RowBlocks as RowBlocks
    from .poisson.row_gradients import RowGradients as RowGradients
    from .poisson.row_gradients import RowSums as RowSums
    from .private import Private as Private
    from .question import Mechanism as Mechanism
    from .question import Planned as Planned
    from .question import Question as Question
    from .question import RowAccess as RowAccess
    from .question import Session as Session
    from .question import State as State
    from .question import Unit as Unit
    from .questions.bare import BareRows as BareRows
    from .questions.choice import Candidates as Candidates
    from .questions.choice import Choice as Choice
    from .questions.head import Head as Head
    from .questions.histogram import Histogram as Histogram
    from .questions.laplace_histogram import LaplaceHistogram as LaplaceHistogram
    from .questions.outer import OuterSum as OuterSum
    from .questions.states import StateCounts as StateCounts
    from .questions.sum import Sum as Sum
    from .row_maps import BlockFactors as BlockFactors
    from .row_maps import FeatureMap as FeatureMap
    from .row_maps import GroupedFeatures as GroupedFeatures
    from .row_maps import LabelledFactors as LabelledFactors
    from .row_maps import OneBlock as OneBlock
    from .teachers.ballots import Ballot as Ballot
    from .teachers.ballots import Directions as Directions
    from .teachers.ballots import Votes as Votes
    from .teachers.ensemble import Faculty as Faculty
    from .teachers.ensemble import Teacher as Teacher
    from .teachers.turns import Turns as Turns
else:
    __getattr__, __dir__ = lazily(
        __name__,
        {
            "asked": "Asked",
            "discrete": "discrete_gaussian",
            "engine": "Work",
            "estimate": "OTHER FrequentValues Quantiles Texts estimates",
            "grid": "GridSum clip_rows",
            "laplace": "discrete_laplace",
            "map_spec": "MapSpec",
            "maps": "chunk_rows evaluated",
            "noise": "Noise Stream",
            "poisson.batch_gradient": "BatchGradient",
            "poisson.ghost_features": "FeatureGradients FeatureSpaceGradients PulledGradients",
            "poisson.ghost_ntk": "TangentGradients",
            "poisson.ghost_plain": "PlainGradients",
            "poisson.gradients": "Gradients",
            "poisson.row_gradients": "RowBlocks RowGradients RowSums",
            "private": "Private",
            "measurement": "Measurement",
            "question": "RowAccess Mechanism Planned Question Session State Unit",
            "questions.bare": "BareRows",
            "questions.choice": "Candidates Choice",
            "questions.head": "Head",
            "questions.histogram": "Histogram",
            "questions.laplace_histogram": "LaplaceHistogram",
            "questions.outer": "OuterSum",
            "questions.states": "StateCounts",
            "questions.sum": "Sum",
            "row_maps": "BlockFactors FeatureMap GroupedFeatures LabelledFactors OneBlock",
            "teachers.ballots": "Ballot Directions Votes",
            "teachers.ensemble": "Faculty Teacher",
            "teachers.turns": "Turns",
        },
    )
