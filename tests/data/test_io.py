"""Data in and out: every format gives the same rows, and no row can raise."""

from __future__ import annotations

import gzip
import struct
import tempfile
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from helpers import image_rows, image_schema, table_rows, table_schema
from PIL import Image as Picture

import limbeck as lk
from limbeck.data import dataset as _data


def _rows(source: object, schema: lk.Schema) -> tuple[np.ndarray, np.ndarray]:
    held = lk.read(source, schema)._encoded()
    return np.asarray(held.cells), held.labels


def _same(left: tuple[np.ndarray, np.ndarray], right: tuple[np.ndarray, np.ndarray]) -> bool:
    return np.array_equal(left[0], right[0], equal_nan=True) and np.array_equal(left[1], right[1])


@pytest.fixture
def frame() -> pd.DataFrame:
    return table_rows(500)


def test_every_table_format_gives_the_same_rows(frame: pd.DataFrame, tmp_path: Path) -> None:
    schema = table_schema()
    expected = _rows(frame, schema)
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_csv(tmp_path / "semicolon.csv", index=False, sep=";")
    frame.to_csv(tmp_path / "t.csv.gz", index=False)
    frame.to_csv(tmp_path / "bom.csv", index=False, encoding="utf-8-sig")
    frame.to_parquet(tmp_path / "t.parquet")
    (tmp_path / "parts").mkdir()
    frame.iloc[:200].to_parquet(tmp_path / "parts" / "a.parquet")
    frame.iloc[200:].to_parquet(tmp_path / "parts" / "b.parquet")
    arrow = pa.Table.from_pandas(frame, preserve_index=False)
    sources = [
        tmp_path / n
        for n in ("t.csv", "semicolon.csv", "t.csv.gz", "bom.csv", "t.parquet", "parts")
    ]
    for source in [*sources, str(tmp_path / "t.csv"), arrow, polars.from_pandas(frame)]:
        assert _same(_rows(source, schema), expected), source
    dictionary = arrow.set_column(2, "town", arrow["town"].dictionary_encode())
    pq.write_table(dictionary, tmp_path / "dictionary.parquet")
    assert _same(_rows(tmp_path / "dictionary.parquet", schema), expected)


def test_strange_cells_are_missing_not_errors(tmp_path: Path) -> None:
    schema = table_schema()
    text = (
        "age,income,town,smoker,seen,ill\n"
        " 41 ,12.5, north ,yes,2010-02-03,yes\n"
        "abc,nan,NORTH,perhaps,03/02/2010,maybe\n"
        '"",,"",,,\n'
        "too,few\n"
        "1e999,-inf,\xff\xfe,1,9999-99-99,no\n"
    )
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    cells, labels = _rows(tmp_path / "t.csv", schema)
    assert len(cells) == 4 and labels.tolist() == [1, -1, -1, 0]
    assert cells[0, 0] == pytest.approx(0.41) and cells[0, 2] == 0 and cells[0, 3] == 1
    assert np.isnan(cells[1:3, 0]).all() and cells[3, 0] == 1.0
    assert cells[:, 1].tolist() == pytest.approx([22.5 / 1010, 0.5, 0.5, 0.0])
    assert cells[1:, 2].tolist() == [3, 3, 3] and cells[1:, 3].tolist() == [-1, -1, 1]


def test_mixed_pandas_columns_become_texts() -> None:
    schema = table_schema()
    frame = table_rows(4).astype(object)
    frame.loc[0, "town"] = 17
    frame.loc[1, "age"] = "forty"
    frame.at[2, "town"] = [1, 2]
    cells, _ = _rows(frame, schema)
    assert cells[0, 2] == 3 and np.isnan(cells[1, 0])


def test_a_csv_is_read_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limbeck.data.csv_files.BLOCK_BYTES", 1 << 12)
    frame = table_rows(3000)
    frame.to_csv(tmp_path / "t.csv", index=False)
    assert _same(_rows(tmp_path / "t.csv", table_schema()), _rows(frame, table_schema()))


def test_rows_beyond_memory_lie_in_a_hidden_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    frame, schema = table_rows(200_000), table_schema()
    expected = _rows(frame, schema)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(_data, "ROWS_IN_MEMORY", 1 << 20)
    held = lk.read(frame, schema)._encoded()
    assert isinstance(held.cells, np.memmap)
    assert not list(tmp_path.iterdir())  # nobody else can open it
    assert _same((np.asarray(held.cells), held.labels), expected)
    assert np.array_equal(held.take(np.array([5, 199_999])).labels, expected[1][[5, 199_999]])


def test_every_image_format_gives_the_same_rows(tmp_path: Path) -> None:
    schema = image_schema()
    images, labels = image_rows(30)
    expected = _rows((images, labels), schema)
    np.savez(tmp_path / "t.npz", images=images, labels=labels)
    np.savez(tmp_path / "xy.npz", x=images[..., 0], y=labels)
    head = struct.pack(">HBBIII", 0, 8, 3, 30, 8, 8)
    (tmp_path / "t-images-idx3-ubyte").write_bytes(head + images.tobytes())
    label_bytes = struct.pack(">HBBI", 0, 8, 1, 30) + labels.astype(np.uint8).tobytes()
    (tmp_path / "t-labels-idx1-ubyte").write_bytes(label_bytes)
    (tmp_path / "u-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + images.tobytes()))
    (tmp_path / "u-labels-idx1-ubyte.gz").write_bytes(gzip.compress(label_bytes))
    names = ["t.npz", "xy.npz", "t-images-idx3-ubyte", "u-images-idx3-ubyte.gz"]
    for name in names:
        assert _same(_rows(tmp_path / name, schema), expected), name
    for i, (picture, label) in enumerate(zip(images, labels, strict=True)):
        folder = tmp_path / "folder" / str(label)
        folder.mkdir(parents=True, exist_ok=True)
        Picture.fromarray(picture[..., 0]).save(folder / f"{i:03d}.png")
    cells, codes = _rows(tmp_path / "folder", schema)
    order = np.argsort(labels, kind="stable")
    assert np.array_equal(cells, expected[0][order]) and np.array_equal(codes, expected[1][order])


def test_a_folder_of_an_undeclared_class_counts_as_nothing(tmp_path: Path) -> None:
    for name in ("0", "1", "stray"):
        (tmp_path / name).mkdir()
        Picture.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / name / "a.jpg")
    assert _rows(tmp_path, image_schema())[1].tolist() == [0, 1, -1]


def test_a_draft_holds_names_and_kinds_and_no_values(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "t.csv", index=False)
    draft = lk.draft_schema(tmp_path / "t.csv")
    with pytest.raises(lk.SchemaError, match="line 4.*name the data set"):
        lk.Schema.parse(draft)
    for value in ("north", "south", "unsure", "2001"):
        assert value not in draft
    named = draft.replace('dataset = "?"', 'dataset = "people"')
    with pytest.raises(lk.SchemaError, match="line.*'age'.*fill in `min`"):
        lk.Schema.parse(named)
    filled = (
        named.replace('min = "?"   # such as 1990-01-31\nmax = "?"', "min = 2000-01-01\nmax = 2020-12-31")
        .replace('min = "?"', "min = -10").replace('max = "?"', "max = 1000")
        .replace('values = "?"', 'values = ["north", "yes"]')
    )  # fmt: skip
    with pytest.raises(lk.SchemaError, match="draft"):
        lk.Schema.parse(filled)
    schema = lk.Schema.parse(filled.replace("confirmed = false", "confirmed = true"))
    kinds = {c.name: c.kind for c in schema.columns}
    assert kinds == {
        "age": "float", "income": "float", "town": "category", "smoker": "boolean",
        "seen": "date", "ill": "boolean",
    }  # fmt: skip


def test_images_are_drafted_with_their_size(tmp_path: Path) -> None:
    images, labels = image_rows(3)
    np.savez(tmp_path / "t.npz", images=images, labels=labels)
    draft = lk.draft_schema(tmp_path / "t.npz")
    assert "height = 8" in draft and 'kind = "label"' in draft


def test_a_header_without_rows_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,income,town,smoker,seen,ill\n")
    assert len(lk.read(tmp_path / "t.csv", table_schema())._encoded()) == 0
    with pytest.warns(lk.LimbeckWarning, match="no row was read"):
        assert 'name = "income"' in lk.draft_schema(tmp_path / "t.csv")


@pytest.mark.parametrize("text", ["# of the ward\nage,ill\n31,no\n", "age,ill\n31,5,no\n32,5,no\n"])
def test_a_draft_of_lines_that_do_not_split_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(lk.DataError, match=r"none of its lines has as many fields.*without quotes"):
        lk.draft_schema(tmp_path / "t.csv")


@pytest.mark.parametrize(
    "line",
    [
        '"open,1,north,yes,2010-02-03,no',
        '1,2" pipe,"north,yes,2010-02-03,no',
        '"' + "x" * 9000,
        '"""',
    ],
)
def test_an_open_quote_harms_no_other_line(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How one record is written never changes how another is read: that would be sensitivity n."""
    monkeypatch.setattr("limbeck.data.csv_files.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("limbeck.data.csv_files.LINE_BYTES", 1 << 10)
    frame, schema = table_rows(300), table_schema()
    frame["town"] = np.where(
        frame["town"] == "north", '"north"', frame["town"]
    )  # quoted in the file
    frame.to_csv(tmp_path / "clean.csv", index=False)
    expected = _rows(tmp_path / "clean.csv", schema)
    lines = (tmp_path / "clean.csv").read_text().splitlines()
    lines.insert(100, line)
    (tmp_path / "dirty.csv").write_text("\n".join(lines) + "\n")
    cells, labels = _rows(tmp_path / "dirty.csv", schema)
    if len(cells) == 301:  # the line has enough fields to count as a record of its own
        cells, labels = np.delete(cells, 99, axis=0), np.delete(labels, 99)
    assert _same((cells, labels), expected)


def test_quoted_fields_keep_delimiters_and_quotes(tmp_path: Path) -> None:
    odd = ("a, b", 'say "hi"', "plain")
    schema = lk.Schema(dataset="d", rows=9, columns=(lk.Category(name="c", values=odd),))
    pd.DataFrame({"c": odd}).to_csv(tmp_path / "t.csv", index=False)
    assert _rows(tmp_path / "t.csv", schema)[0][:, 0].tolist() == [0, 1, 2]


def test_one_line_is_one_record_whatever_it_holds(tmp_path: Path) -> None:
    schema = lk.Schema(dataset="d", rows=9, columns=(lk.Category(name="c", values=("a", "b")),))
    text = b"c\n" + b"a\n" * 50 + b"b\rb\rb\rb\n" + b"a\r\n" * 50
    (tmp_path / "t.csv").write_bytes(text)
    cells = _rows(tmp_path / "t.csv", schema)[0][:, 0]
    assert len(cells) == 101 and (cells == 0).sum() == 100 and (cells == 1).sum() == 0
    (tmp_path / "mac.csv").write_bytes(b"c\ra\rb\r")
    with pytest.raises(lk.DataError, match="CR"):
        lk.read(tmp_path / "mac.csv", schema)


@pytest.mark.parametrize("position", [0, 40, 99])
def test_a_line_too_long_vanishes_wherever_it_stands(
    position: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("limbeck.data.csv_files.BLOCK_BYTES", 1 << 12)
    monkeypatch.setattr("limbeck.data.csv_files.LINE_BYTES", 1 << 10)
    schema = lk.Schema(dataset="d", rows=9, columns=(lk.Category(name="c", values=("a", "b")),))
    for length in (1025, 1500, 9000):
        lines = ["a"] * 100
        lines[position] = "b" * length
        (tmp_path / "t.csv").write_text("c\n" + "\n".join(lines) + "\n")
        assert _rows(tmp_path / "t.csv", schema)[0][:, 0].tolist() == [0.0] * 99


def test_one_cell_never_changes_how_others_are_read() -> None:
    """A pandas column of objects is read cell by cell, not by a kind guessed from all cells."""
    schema = lk.Schema(dataset="d", rows=9, columns=(lk.Category(name="c", values=(0, 1)),))
    for strange in ("x", 2**70, "\ud800", None, [1], b"1", 0.5):
        cells = _rows(pd.DataFrame({"c": [1.0, 0.0, strange]}, dtype=object), schema)[0]
        assert cells[:2, 0].tolist() == [1, 0], strange


# ---- what a file's structure may tell -----------------------------------------------------------


RECORDS = [
    "39,Ulm,13.5,1984-03-07\n50,Trier,2,1990-01-01\n", "39;Ulm;13,5;07.03.1984\n", "Ulm,,Bob\n", "NA,Ulm,Bob\n",
    "Ulm,true,Bob\n", "1.234,Ulm\n", "Ulm,12:30\n", "Ulm,12 %\n",
]  # fmt: skip


@pytest.mark.parametrize("text", RECORDS)
def test_a_first_record_is_not_taken_for_names(text: str, tmp_path: Path) -> None:
    """The first person's values stood in the draft, then in schema, certificate and card."""
    (tmp_path / "t.csv").write_text(text)
    frame = pd.DataFrame([[0] * 4], columns=RECORDS[0].split("\n")[0].split(","))
    frame.to_parquet(tmp_path / "t.parquet")
    for source in (tmp_path / "t.csv", tmp_path / "t.parquet", frame):
        for attempt in (lk.draft_schema, lambda s: lk.read(s, table_schema())):
            with pytest.raises(lk.DataError, match="look like values.*--names-are-right") as told:
                attempt(source)
            assert not any(cell in str(told.value) for cell in ("39", "Ulm", "Bob", "1984", "13"))


def test_no_name_is_printed_that_may_be_a_value(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("Ulm,Bob\nTrier,Eve\n")
    with pytest.raises(lk.DataError, match="None of its 2 column names is known") as told:
        lk.read(tmp_path / "t.csv", table_schema())
    assert "Bob" not in str(told.value)
    (tmp_path / "t.csv").write_text("Ulm,Bob,Ulm\n")
    with pytest.raises(lk.DataError, match="columns 1 and 3 have the same name") as told:
        lk.draft_schema(tmp_path / "t.csv")
    assert "Ulm" not in str(told.value)


def test_names_that_look_like_values_can_be_names(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("2019,2020\n1,2\n")
    draft = lk.draft_schema(tmp_path / "t.csv", names_are_right=True)
    filled = draft.replace('dataset = "?"', 'dataset = "d"').replace('min = "?"', "min = 0")
    filled = filled.replace('max = "?"', "max = 4").replace("confirmed = false", "confirmed = true")
    schema = lk.Schema.parse(filled)
    assert schema.names_are_right and lk.Schema.parse(schema.toml()) == schema
    assert _rows(tmp_path / "t.csv", schema)[0].tolist() == [[0.25, 0.5]]


def test_encodings(tmp_path: Path) -> None:
    text = "Größe,Ort\n" + "170,Köln\n" * 3
    (tmp_path / "t.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(lk.DataError, match='no text in utf-8.*encoding = "cp1252".*--encoding'):
        lk.draft_schema(tmp_path / "t.csv")
    assert 'encoding = "cp1252"' in lk.draft_schema(tmp_path / "t.csv", encoding="cp1252")
    columns = (
        lk.Numeric(name="Größe", min=0, max=340),
        lk.Category(name="Ort", values=("Ulm", "Köln")),
    )
    schema = lk.Schema(dataset="d", columns=columns, encoding="latin-1")
    assert lk.Schema.parse(schema.toml()) == schema
    assert _rows(tmp_path / "t.csv", schema)[0].tolist() == [[0.5, 1.0]] * 3
    (tmp_path / "t.csv").write_bytes(text.replace("Größe", "size").encode("latin-1"))
    draft = lk.draft_schema(tmp_path / "t.csv")
    assert 'encoding = "?"' in draft
    (tmp_path / "t.csv").write_bytes(text.encode("utf-16"))
    with pytest.raises(lk.DataError, match="UTF-16"):
        lk.draft_schema(tmp_path / "t.csv")
    for bad in ("utf-16", "shift_jis", "nonsense", "cp037", "base64", 7):
        with pytest.raises(lk.SchemaError, match="one byte per character"):
            lk.Schema(dataset="d", columns=columns, encoding=bad)  # type: ignore[arg-type]


def test_a_draft_tells_moments_from_days(tmp_path: Path) -> None:
    for cell, kind in (("2010-02-03 04:05:00", "datetime"), ("2010-02-03 00:00:00", "date")):
        (tmp_path / "t.csv").write_text(f"seen\n{cell}\n")
        for source in (tmp_path / "t.csv", pd.DataFrame({"seen": [pd.Timestamp(cell)]})):
            assert f'kind = "{kind}"' in lk.draft_schema(source)


def test_a_reader_left_early_ends_its_thread(tmp_path: Path) -> None:
    """A stream of Arrow's read on behind a draft, and brought the program down at its end."""
    (tmp_path / "t.csv").write_text("a\n" + "1\n" * 9)
    lk.draft_schema(tmp_path / "t.csv")
    before = threading.active_count()
    schema = lk.Schema(dataset="d", columns=(lk.Numeric(name="a", min=0, max=9),))
    chunks = lk.read(tmp_path / "t.csv", schema)._source.chunks(schema)
    next(iter(chunks))
    chunks.close()  # type: ignore[attr-defined]
    assert threading.active_count() == before
