"""Data files that are refused: damaged, of another kind, of other columns than the schema's."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pandas as pd
import pyarrow as pa
from desk import CSV, ZEROS, Case, Desk


def truncated(content: bytes) -> bytes:
    return content[: len(content) * 2 // 3]


def idx(*shape: int) -> bytes:
    head = bytes([0, 0, 8, len(shape)]) + b"".join(s.to_bytes(4, "big") for s in shape)
    return head + bytes(int(np.prod(shape)))


def frame(rows: int = 3000) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    ages, towns = rng.integers(0, 99, rows), rng.choice(["Ulm", "Trier"], rows)
    return pd.DataFrame({"age": ages, "town": towns, "ill": "no"})


def damaged_parquet(desk: Desk) -> list[str]:
    """The footer is whole, so the file opens; its pages are not, so it cannot be read."""
    path = desk.parquet(frame())
    content = bytearray(path.read_bytes())
    content[4:2000] = bytes(1996)
    path.write_bytes(content)
    return desk.distill(data=path)


def twice_in_parquet(desk: Desk) -> list[str]:
    columns = [pa.array([1]), pa.array(["Ulm"]), pa.array(["no"]), pa.array([2])]
    return desk.distill(data=desk.parquet(pa.table(columns, names=["age", "town", "ill", "age"])))


def array_as_npz(desk: Desk) -> list[str]:
    stream = io.BytesIO()
    np.save(stream, np.zeros((3, 4, 4)))
    return desk.images(desk.file("pictures.npz", stream.getvalue()))


def corrupt_npz(desk: Desk) -> list[str]:
    noise = np.random.default_rng(0).integers(0, 255, (99, 4, 4), np.uint8)
    path = desk.npz(images=noise)
    content = bytearray(path.read_bytes())
    content[200:900] = bytes(700)
    path.write_bytes(content)
    return desk.images(path)


def mixed_sizes(desk: Desk) -> list[str]:
    desk.picture("pictures/0/a.png")
    desk.picture("pictures/1/b.png", (5, 4))
    return desk.images(desk.folder / "pictures")


def bad_picture(desk: Desk) -> list[str]:
    desk.picture("pictures/0/a.png")
    desk.file("pictures/1/b.png", "no picture")
    return desk.images(desk.folder / "pictures")


def cut_picture(desk: Desk) -> list[str]:
    path = desk.picture("pictures/0/a.png", (4, 4))
    path.write_bytes(truncated(path.read_bytes()))
    return desk.images(desk.folder / "pictures")


def other_folders(desk: Desk) -> list[str]:
    desk.picture("pictures/cats/a.png")
    return desk.images(desk.folder / "pictures")


def empty_folder(desk: Desk) -> list[str]:
    (desk.folder / "nothing").mkdir()
    return desk.distill(data=desk.folder / "nothing")


COLUMNS_4 = "age,town,ill,income\n1,Ulm,no,3\n"

DATA: list[Case] = [
    ("no data file", lambda d: d.distill(data=d.folder / "none.csv"), ("No file", "none.csv")),
    ("folder of nothing", empty_folder, ("nothing", "neither Parquet", "images per class")),
    ("empty file", lambda d: d.table(""), ("people.csv is empty", "column names")),
    ("blank file", lambda d: d.table("\n\n"), ("people.csv is empty", "column names")),
    (
        "unknown kind of file",
        lambda d: d.distill(data=d.file("a.xlsx", "x")),
        ("a.xlsx", ".csv", ".parquet"),
    ),
    (
        "column lacks",
        lambda d: d.table("age,ill\n1,no\n"),
        ("no column 'town'", "It has: age, ill"),
    ),
    ("column extra", lambda d: d.table(COLUMNS_4), ("'income'", 'ignore = ["income"]')),
    (
        "a spreadsheet's own first line",
        lambda d: d.table("\ufeffsep=;\r\nage;town;ill\r\n31;Ulm;no\r\n"),
        ("sep=", "Take it out"),
    ),
    (
        "column twice",
        lambda d: d.table("age,town,age,ill\n"),
        ("columns 1 and 3", "same name", "Rename"),
    ),
    ("column twice, parquet", twice_in_parquet, ("columns 1 and 4", "same name", "Rename")),
    ("endless header", lambda d: d.table("x" * 300_000 + CSV), ("people.csv", "column names")),
    ("binary csv", lambda d: d.table("\x00\x01\x1b[31m" * 90), ("people.csv", "no column 'age'")),
    (
        "cut csv.gz",
        lambda d: d.distill(data=d.file("p.csv.gz", truncated(gzip.compress(CSV.encode() * 999)))),
        ("Cannot read", "p.csv.gz"),
    ),
    (
        "corrupt csv.gz",
        lambda d: d.distill(data=d.file("p.csv.gz", gzip.compress(CSV.encode())[:12] + b"xxxxxxx")),
        ("Cannot read", "p.csv.gz"),
    ),
    (
        "cut parquet",
        lambda d: d.distill(data=d.file("p.parquet", truncated(d.parquet(frame()).read_bytes()))),
        ("p.parquet", "as Parquet"),
    ),
    ("damaged parquet", damaged_parquet, ("people.parquet", "as Parquet")),
    (
        "text as parquet",
        lambda d: d.distill(data=d.file("p.parquet", CSV)),
        ("p.parquet", "Parquet"),
    ),
    ("bad picture", bad_picture, ("Cannot read the image", "b.png")),
    ("cut picture", cut_picture, ("Cannot read the image", "a.png")),
    ("mixed sizes", mixed_sizes, ("b.png", "4x5", "4x4", "one size")),
    ("other folders", other_folders, ("pictures", "label value", "0, 1")),
    ("no images in npz", lambda d: d.images(d.npz(pixels=ZEROS)), ("pictures.npz", "`images`")),
    ("no labels in npz", lambda d: d.images(d.npz(images=ZEROS)), ("no labels", "pictures.npz")),
    (
        "npz of other shape",
        lambda d: d.images(d.npz(images=np.zeros((3, 5, 5)), labels=np.zeros(3))),
        ("(5, 5, 1)", "(4, 4, 1)", "pictures.npz"),
    ),
    (
        "npz with few labels",
        lambda d: d.images(d.npz(images=ZEROS, labels=np.zeros(2))),
        ("as many labels", "pictures.npz"),
    ),
    (
        "npz with a table of labels",
        lambda d: d.images(d.npz(images=ZEROS, labels=np.zeros((3, 2)))),
        ("labels", "2 axes", "pictures.npz"),
    ),
    (
        "npz of texts",
        lambda d: d.images(d.npz(images=np.full((3, 4, 4), "a"))),
        ("expected numbers", "pictures.npz"),
    ),
    (
        "npz of objects",
        lambda d: d.images(d.npz(images=np.asarray([{}, None]))),
        ("Cannot read", "pictures.npz"),
    ),
    (
        "cut npz",
        lambda d: d.images(d.file("a.npz", truncated(d.npz(images=ZEROS).read_bytes()))),
        ("a.npz", "as npz"),
    ),
    ("corrupt npz", corrupt_npz, ("pictures.npz", "as npz")),
    ("npy as npz", array_as_npz, ("pictures.npz", "as npz")),
    ("empty npz", lambda d: d.images(d.file("a.npz", "")), ("a.npz", "as npz")),
    (
        "cut idx",
        lambda d: d.images(d.file("images-idx3-ubyte", truncated(idx(9, 4, 4)))),
        ("images-idx3-ubyte", "cut short"),
    ),
    (
        "empty idx",
        lambda d: d.images(d.file("images-idx3-ubyte", "")),
        ("images-idx3-ubyte", "idx"),
    ),
    (
        "corrupt idx.gz",
        lambda d: d.images(
            d.file("images-idx3-ubyte.gz", gzip.compress(idx(9, 4, 4))[:12] + b"xxxxxxx")
        ),
        ("images-idx3-ubyte.gz", "as idx"),
    ),
    (
        "table, image schema",
        lambda d: d.images(d.file("people.csv", CSV)),
        ("people.csv is a table", "image"),
    ),
    (
        "images, table schema",
        lambda d: d.distill(data=d.npz(images=ZEROS)),
        ("pictures.npz holds images", "no image column"),
    ),
]
