"""Schemas that are refused, by the line that is wrong."""

from __future__ import annotations

from desk import TOWNS, ZEROS, Case

ILL = 'kind = "label"\nvalues = ["no", "yes"]'
TOWN_COLUMN = f'[[column]]\nname = "town"\nkind = "category"\n{TOWNS}\n'

SCHEMAS: list[Case] = [
    ("no schema", lambda d: d.distill(schema=d.folder / "no.toml"), ("no.toml", "limbeck schema")),
    ("folder as schema", lambda d: d.distill(schema=d.folder), ("Cannot read the schema",)),
    (
        "binary schema",
        lambda d: d.distill(schema=d.file("s.toml", b"\xff\xfe\x00")),
        ("Cannot read the schema", "s.toml"),
    ),
    ("not TOML", lambda d: d.declare("rows = 200", "rows is 200"), ("not valid TOML", "line 2")),
    ("unknown key", lambda d: d.declare("rows = 200", "row = 200"), ("'row'", "Known:", "rows")),
    ("unknown kind", lambda d: d.declare('"integer"', '"int"'), ("line 11", "'int'", "integer")),
    (
        "kind of kind",
        lambda d: d.declare('"integer"', '["integer"]'),
        ("line 11", "kind", "integer"),
    ),
    ("no kind", lambda d: d.declare('kind = "integer"\n', ""), ("'age'", "kind", "integer")),
    ("no name", lambda d: d.declare('name = "age"\n', ""), ("[[column]]", 'name = "..."')),
    (
        "columns as numbers",
        lambda d: d.distill(
            schema=d.file(
                "schema.toml", 'dataset = "a"\nrows = 9\nconfirmed = true\ncolumn = [1, 2]\n'
            )
        ),
        ("[[column]]",),
    ),
    (
        "unknown column key",
        lambda d: d.declare("max = 99", "maximum = 99"),
        ("line 13", "'age'", "'maximum'", "min, missing"),
    ),
    ("no bound", lambda d: d.declare("max = 99\n", ""), ("'age'", "`max`", "fill in")),
    ("unfilled bound", lambda d: d.declare("max = 99", 'max = "?"'), ("line 13", "'age'", "`max`")),
    (
        "unfilled values",
        lambda d: d.declare(TOWNS, 'values = "?"'),
        ("line 18", "'town'", "`values`"),
    ),
    ("no values", lambda d: d.declare(TOWNS, "values = []"), ("line 18", "'town'", "at least one")),
    ("value twice", lambda d: d.declare('"Trier"', '"Ulm"'), ("'town'", "twice")),
    ("bound is text", lambda d: d.declare("max = 99", 'max = "99"'), ("line 13", "number", "'99'")),
    (
        "unconfirmed",
        lambda d: d.declare("= true", "= false"),
        ("line 3", "draft", "confirmed = true"),
    ),
    (
        "no data set",
        lambda d: d.declare('dataset = "people"\n', ""),
        ("name the data set", "ledger"),
    ),
    ("unfilled name", lambda d: d.declare('"people"', '"?"'), ("line 1", "name the data set")),
    ("blank name", lambda d: d.declare('"people"', '" "'), ("name the data set",)),
    (
        "min > max",
        lambda d: d.declare("min = 0", "min = 100"),
        ("'age'", "min <= max", "100", "99"),
    ),
    (
        "outside missing",
        lambda d: d.declare("max = 99", 'max = 99\noutside = "missing"'),
        ("'age'", "`missing = true`"),
    ),
    (
        "outside elsewhere",
        lambda d: d.declare(TOWNS, f'{TOWNS}\noutside = "Bonn"'),
        ("'town'", '"Bonn"', "declared values"),
    ),
    (
        "missing is text",
        lambda d: d.declare(TOWNS, f'{TOWNS}\nmissing = "no"'),
        ("'town'", "true or false", "'no'"),
    ),
    ("label missing", lambda d: d.declare(ILL, f"{ILL}\nmissing = true"), ("'ill'", "'missing'")),
    (
        "label estimated",
        lambda d: d.declare(ILL, 'kind = "label"\nvalues = "estimate"'),
        ("'ill'", "must be declared"),
    ),
    ("two labels", lambda d: d.declare('"category"', '"label"'), ("one column", "label", "'town'")),
    (
        "only a label",
        lambda d: d.distill(
            schema=d.file(
                "schema.toml",
                f'dataset = "a"\nrows = 9\nconfirmed = true\n[[column]]\nname = "ill"\n{ILL}\n',
            )
        ),
        ("no column besides what is to be predicted",),
    ),
    ("declared twice", lambda d: d.declare('"town"', '"age"'), ("'age'", "declared twice")),
    ("no rows", lambda d: d.declare("rows = 200\n", ""), ("rows = 10000", '"measure"')),
    ("rows is text", lambda d: d.declare("rows = 200", 'rows = "many"'), ("line 2", '"measure"')),
    ("zero rows", lambda d: d.declare("rows = 200", "rows = 0"), ("line 2", "rows = 10000")),
    (
        "no outer range",
        lambda d: d.declare("min = 0\nmax = 99", 'min = "estimate"\nmax = "estimate"'),
        ("'age'", "outer = [lowest, highest]"),
    ),
    (
        "outer is a number",
        lambda d: d.declare("min = 0\nmax = 99", 'min = "estimate"\nmax = "estimate"\nouter = 5'),
        ("'age'", "outer = [lowest, highest]", "5"),
    ),
    (
        "ignore is text",
        lambda d: d.declare("rows", 'ignore = "id"\nrows'),
        ("ignore", '["', "'id'"),
    ),
    (
        "unit is a number",
        lambda d: d.declare("rows", "unit = 3\nrows"),
        ("unit", "3", "one patient"),
    ),
    (
        "share is text",
        lambda d: d.declare("rows", 'estimate_share = "a"\nrows'),
        ("estimate_share", "'a'"),
    ),
    (
        "lifetime epsilon",
        lambda d: d.declare("epsilon = 1.5", "epsilon = 0"),
        ("[lifetime]", "0 < delta"),
    ),
    (
        "lifetime text",
        lambda d: d.declare("epsilon = 1.5", 'epsilon = "1"'),
        ("[lifetime]", "0 < delta", "'1'"),
    ),
    (
        "lifetime key",
        lambda d: d.declare("epsilon = 1.5", "eps = 1.5"),
        ("[lifetime]", "'eps'", "epsilon"),
    ),
    (
        "lifetime filter",
        lambda d: d.declare("delta = 1e-4", 'filter = "x"'),
        ("[lifetime]", '"x"', "gdp"),
    ),
    (
        "lifetime is a number",
        lambda d: d.distill(
            schema=d.schema("[lifetime]\nepsilon = 1.5\ndelta = 1e-4\n", "lifetime = 3\n")
        ),
        ("[lifetime]", "3"),
    ),
    (
        "image of no size",
        lambda d: d.images(d.npz(images=ZEROS), "height = 4", "height = 0"),
        ("'image'", "positive"),
    ),
    (
        "image of text size",
        lambda d: d.images(d.npz(images=ZEROS), "height = 4", 'height = "4"'),
        ("'image'", "height", "'4'"),
    ),
    (
        "two channels",
        lambda d: d.images(d.npz(images=ZEROS), "width = 4", "width = 4\nchannels = 2"),
        ("'image'", "1 or 3 channels", "2"),
    ),
    (
        "image and table",
        lambda d: d.images(d.npz(images=ZEROS), "[[column]]", f"{TOWN_COLUMN}[[column]]"),
        ("one image column",),
    ),
]
