"""Scores of released data against real test data. They never see a method."""

from ._convnet import ConvNet as ConvNet
from ._convnet import convnet_accuracy as convnet_accuracy
from ._convnet import convnet_logits as convnet_logits
from ._convnet import train_convnet as train_convnet
from ._deform import Deformation as Deformation
from ._logistic import logistic_score as logistic_score
from ._ridge import feature_rows as feature_rows
from ._ridge import ridge_accuracy as ridge_accuracy
from ._ridge import ridge_predictions as ridge_predictions
