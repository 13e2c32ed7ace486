"""A folder of images, one subfolder per class: a private release of a few images per class.

Usage: python examples/image_folder.py [FOLDER]
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import limbeck as lk


def draw_pictures(folder: Path, each: int) -> None:
    """Made-up pictures in place of yours: bright bars that lie or stand."""
    rng = np.random.default_rng(0)
    for number in range(2 * each):
        pixels = rng.integers(0, 60, (16, 16), dtype=np.uint8)
        at = rng.integers(3, 11)
        name = ("lying", "standing")[number % 2]
        if name == "lying":
            pixels[at : at + 3] = 220
        else:
            pixels[:, at : at + 3] = 220
        (folder / name).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name / f"{number}.png")


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    draw_pictures(folder / "pictures", each=600)

    schema = lk.Schema(
        dataset="bars",
        rows=1200,
        unit="one picture",
        columns=(
            lk.Image(height=16, width=16),
            lk.Category(name="label", values=("lying", "standing"), label=True),
        ),
    )
    release = lk.distill(
        lk.read(folder / "pictures", schema),
        # Small, for speed; the defaults are better.
        lk.MeasureOnce(per_class=5, networks=1, network_width=8, teacher_steps=5, steps=10),
        lk.Budget(epsilon=2.0, delta=1e-5),
        out=folder / "release",
        ledger=lk.Ledger(folder / "ledger.sqlite"),
    )
    print(len(release.data.images), "images; look at", folder / "release" / "contact-sheet.png")


if __name__ == "__main__":
    main()
