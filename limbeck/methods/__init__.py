"""The methods: a folder for each family. `METHODS` is the table that the command line reads."""

from ..schema import Schema
from .adversarial.dp_cgan import DPCGAN as DPCGAN
from .adversarial.dp_gan import DPGAN as DPGAN
from .adversarial.dp_sinkhorn import DPSinkhorn as DPSinkhorn
from .adversarial.gs_wgan import GSWGAN as GSWGAN
from .adversarial.pate_gan import PATEGAN as PATEGAN
from .base import AbstractInquiry as AbstractInquiry
from .base import AbstractMeasureOnce as AbstractMeasureOnce
from .base import AbstractMethod as AbstractMethod
from .base import Product as Product
from .base import Progress as Progress
from .base import origin as origin
from .base import values_of as values_of
from .class_counts import COUNTS as COUNTS
from .class_counts import class_weights as class_weights
from .classifiers.dp_sgd import DPSGD as DPSGD
from .classifiers.linear_head import LinearHead as LinearHead
from .classifiers.trained import TrainedModel as TrainedModel
from .diffusion.diffused import Diffused as Diffused
from .diffusion.dpdm import DPDM as DPDM
from .distribution_matching.ndpdc import NDPDC as NDPDC
from .distribution_matching.psg import PSG as PSG
from .gpate.datalens import DataLens as DataLens
from .gpate.gpate import GPATE as GPATE
from .graphical.aim import AIM as AIM
from .graphical.graphical import AbstractGraphical as AbstractGraphical
from .graphical.mst import MST as MST
from .graphical.privbayes import PrivBayes as PrivBayes
from .graphical.table_rows import TableRows as TableRows
from .kip.dp_kip import DPKIP as DPKIP
from .kip.kernel import AbstractFeatureKernel as AbstractFeatureKernel
from .kip.kernel import AbstractKernel as AbstractKernel
from .kip.kernel_method import AbstractKernelMethod as AbstractKernelMethod
from .kip.kernels import KERNELS as KERNELS
from .kip.kernels import ConvolutionalKernel as ConvolutionalKernel
from .kip.kernels import EmpiricalTangentKernel as EmpiricalTangentKernel
from .kip.kernels import FullyConnectedKernel as FullyConnectedKernel
from .kip.kernels import PerceptualKernel as PerceptualKernel
from .kip.kernels import ScatteringKernel as ScatteringKernel
from .kip.kip import KIP as KIP
from .marginals.marginals import Marginals as Marginals
from .marginals.soft_rows import SoftRows as SoftRows
from .mean_embedding.dp_hp import DPHP as DPHP
from .mean_embedding.dp_mepf import DPMEPF as DPMEPF
from .mean_embedding.dp_merf import DPMERF as DPMERF
from .mean_embedding.dp_ntk import DPNTK as DPNTK
from .mean_embedding.embedding import AbstractMeanEmbedding as AbstractMeanEmbedding
from .mean_embedding.full_mmd import FullMMD as FullMMD
from .mean_embedding.pearl import PEARL as PEARL
from .measure_once.measure_once import MeasureOnce as MeasureOnce
from .measure_once.teacher import linear_features as linear_features
from .measure_once.teacher import train_teacher as train_teacher
from .part import AbstractPart as AbstractPart
from .part import Auto as Auto
from .part import choices_of as choices_of
from .part import overlaid as overlaid
from .part import part_field as part_field
from .registry import METHODS as METHODS
from .registry import method_class as method_class
from .source import SOURCES as SOURCES
from .source import Distilled as Distilled
from .source import Generated as Generated
from .source import RowSource as RowSource
from .wanted import ANYTHING as ANYTHING
from .wanted import Given as Given
from .wanted import Wanted as Wanted


def default_method(schema: Schema) -> str:
    """The name of the method that is used where the owner names none: it fits the kind of data."""
    if not schema.image:
        return Marginals.name
    return MeasureOnce.name if schema.label else DPMERF.name
