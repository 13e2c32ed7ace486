"""The systems that the papers compare with: how each is run, and what was published of it."""

from __future__ import annotations

from dataclasses import dataclass, field

IMAGES = ("mnist", "fashion-mnist")
COLOUR = "cifar10"

Figures = dict[tuple[str, int], str]


@dataclass(frozen=True, kw_only=True)
class System:
    """A row: how it is run, and what its authors or the papers found."""

    name: str
    images: str = ""
    """What is run on images: a method, or a recipe with a variant after '#'; empty: not for images."""
    tables: str = ""
    colour: str = ""
    """The same for CIFAR-10."""
    wants_network: bool = False
    """Whether it is given a network that learned from other, public images (`PUBLIC`)."""
    published: Figures = field(default_factory=dict)
    """By data set and epsilon: logistic regression, MLP, CNN in per cent, as far as known."""
    differs: str = ""
    """In what the published runs differ, where that may explain figures far above ours."""


def published(*cells: str) -> Figures:
    """Figures of MNIST at epsilon 1 and 10, then Fashion-MNIST's."""
    places = [(data, epsilon) for data in IMAGES for epsilon in (1, 10)]
    return {place: cell for place, cell in zip(places, cells, strict=True) if cell}


SYSTEMS = (
    System(name="class-means", images="class-means"),
    System(name="single-columns", tables="single-columns"),
    System(name="measure-once", images="measure-once", colour="measure-once"),
    System(name="marginals", tables="marginals"),
    System(
        name="dp-gan", images="dp-gan", tables="dp-gan",
        differs="50,000 steps, as its authors' program has it, whose noise is tied to no bound of a gradient",
        published=published("- / - / 40.4", "- / - / 80.1", "- / - / 10.5", "- / - / 61.0"),
    ),
    System(
        name="dp-cgan", images="dp-cgan", tables="dp-cgan",
        differs="29,000 steps (here 1000, in which the discriminator outruns the generator); in its authors' program labels of real batches reach the generator without noise",
        published=published("- / - / 38.1", "60 / 60 / 52.5", "- / - / 26.3", "51 / 50 / 50.2"),
    ),
    System(
        name="gs-wgan", images="gs-wgan#quick",
        differs="convolutions on graphics cards, and a price for each generated row apart: its noise at epsilon 10 honestly costs 379",
        published=published("- / - / 48.3", "79 / 79 / 84.9", "- / - / 39.2", "68 / 65 / 63.1"),
    ),
    System(name="pate-gan", images="pate-gan#quick-images", tables="pate-gan#quick-tables"),
    System(
        name="datalens", images="datalens#quick",
        differs="4000 larger teachers, and an epsilon that depends on the data, which also says when to stop",
        published=published("- / - / 71.2", "- / - / 80.7", "- / - / 64.8", "- / - / 70.6"),
    ),
    System(
        name="g-pate", images="g-pate",
        differs="an epsilon that depends on the data, which also says when to stop; accuracy is that of the best of 600 epochs on test images",
        published=published("- / - / 56.3", "- / - / 80.9", "- / - / 51.7", "- / - / 69.3"),
    ),
    System(
        name="dpdm", images="dpdm", colour="dpdm",
        differs="4395 steps of 4096 images with 32 draws of noise each, and 1.7 million numbers: weeks on two cores",
        published=published(
            "86.7 / 91.6 / -", "90.8 / 94.8 / -", "76.3 / 76.9 / -", "81.1 / 83.0 / -"
        ),
    ),
    System(
        name="dp-merf", images="dp-merf",
        differs="settings chosen without a validation split; a CNN taught by 60,000 images",
        published=published(
            "76.9 / 80.7 / 72.7", "79.4 / 78.3 / 85.7", "72.8 / 73.8 / 61.2", "75.5 / 74.5 / 72.4"
        ),
    ),
    System(
        name="pearl", images="pearl",
        differs="a length scale of unknown origin, settings chosen without a validation split",
        published=published(
            "76.0 / 79.6 / -", "76.5 / 78.3 / -", "74.4 / 74.0 / -", "72.6 / 73.2 / -"
        ),
    ),
    System(
        name="dp-mepf", images="dp-mepf", colour="dp-mepf", wants_network=True,
        differs="a ResNet-18 of public SVHN images, 100,000 updates; here a ConvNet of three layers that saw CIFAR-10 for minutes",
        published=published("82 / 89 / -", "83 / 89 / -", "75 / 75 / -", "76 / 76 / -"),
    ),
    System(
        name="dp-sinkhorn", images="dp-sinkhorn",
        differs="some 100,000 steps, and the generator with the best accuracy on test images",
        published=published(
            "- / - / 70.2", "82.8 / 82.7 / 83.2", "- / - / 56.3", "75.1 / 74.6 / 71.1"
        ),
    ),
    System(
        name="psg", images="psg#quick",
        differs="1000 networks of 128 filters, 20 images per class; here 20 of 32 filters, 10 images per class",
        published=published("- / - / 80.9", "- / - / 95.6", "- / - / 70.2", "- / - / 77.7"),
    ),
    System(
        name="ndpdc", images="ndpdc", colour="ndpdc",
        differs="50 images per class, deformed while they teach, 10,000 networks of 128 filters; exact class sizes; here 10 images per class",
        published={
            ("mnist", 10): "- / - / 97.35 (50 per class, epsilon 6.12)",
            ("fashion-mnist", 10): "- / - / 82.72 (50 per class, epsilon 5.45)",
            (COLOUR, 1): "- / - / 42.6 (50 per class)",
            (COLOUR, 10): "- / - / 53.9 (50 per class)",
        },
    ),
    System(name="privbayes", tables="privbayes"),
    System(name="mst", tables="mst"),
    System(name="aim", tables="aim"),
)  # fmt: skip
"""Published: papers 000, 001, 003 and 004 (their tables' rows), for NDPDC its own paper."""
