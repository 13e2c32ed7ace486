"""Scores of released data against real test data. They never see a method."""

from ._battery import battery as battery
from ._classifiers import CREDIT as CREDIT
from ._classifiers import FOUR as FOUR
from ._classifiers import TWELVE as TWELVE
from ._classifiers import Classifier as Classifier
from ._classifiers import classifier_scores as classifier_scores
from ._classifiers import mean_scores as mean_scores
from ._cnn import cnn_accuracy as cnn_accuracy
from ._control import matching_subset as matching_subset
from ._convnet import ConvNet as ConvNet
from ._convnet import convnet_accuracy as convnet_accuracy
from ._deform import Deformation as Deformation
from ._frechet import frechet_distance as frechet_distance
from ._legacy import legacy_scores as legacy_scores
from ._likelihood import mixture_nll as mixture_nll
from ._logistic import logistic_score as logistic_score
from ._marginals import discretise as discretise
from ._marginals import marginal_distance as marginal_distance
from ._marginals import mean_marginal_distance as mean_marginal_distance
from ._nearest import nearest_distances as nearest_distances
from ._ridge import feature_rows as feature_rows
from ._ridge import ridge_accuracy as ridge_accuracy
from ._ridge import ridge_predictions as ridge_predictions
from ._scores import Score as Score
from ._scores import Scores as Scores
