"""Budgets, methods and recipes that are refused."""

from __future__ import annotations

from desk import SETTINGS, Case

SETUP: list[Case] = [
    ("epsilon 0", lambda d: d.distill(epsilon=0), ("epsilon", "got 0")),
    ("epsilon negative", lambda d: d.distill(epsilon=-1), ("epsilon", "got -1")),
    ("epsilon nan", lambda d: d.distill(epsilon="nan"), ("epsilon", "nan")),
    ("epsilon text", lambda d: d.distill(epsilon="one"), ("--epsilon", "'one'", "--help")),
    ("epsilon inf", lambda d: d.distill(epsilon="inf"), ("infinity", "--non-private")),
    ("epsilon huge", lambda d: d.distill(epsilon=1e6), ("epsilon",)),
    ("delta 1", lambda d: d.distill("--delta", 1), ("0 < delta < 1", "got 1")),
    ("delta 0", lambda d: d.distill("--delta", 0), ("0 < delta < 1", "got 0")),
    ("delta large", lambda d: d.distill("--delta", 0.01), ("1/rows = 0.005", "200", "got 0.01")),
    ("unknown method", lambda d: d.distill("--method", "gan"), ("'gan'", "Known: marginals")),
    ("seed text", lambda d: d.distill("--seed", "x"), ("--seed", "'x'")),
    ("no recipe", lambda d: d.distill(recipe=d.folder / "no.toml"), ("recipe", "no.toml")),
    (
        "recipe not TOML",
        lambda d: d.settle("features = 20", "features 20"),
        ("not valid TOML", "line 3"),
    ),
    (
        "recipe key",
        lambda d: d.settle("method", "color = 1\nmethod"),
        ("'color'", "Known:", "settings"),
    ),
    ("recipe nameless", lambda d: d.settle('method = "dp-merf"\n', ""), ("names no method",)),
    (
        "recipe of method",
        lambda d: d.settle('"dp-merf"', '["a"]'),
        ("recipe.toml", "method", "dp-merf"),
    ),
    ("recipe of unknown", lambda d: d.settle('"dp-merf"', '"gan"'), ("'gan'", "dp-merf")),
    (
        "recipe unpaid",
        lambda d: d.settle('method = "dp-merf"\n', 'method = "dp-merf"\nunpaid = true\n'),
        ("recipe.toml", "unpaid", "True"),
    ),
    (
        "recipe rows",
        lambda d: d.settle("[settings]", "rows = 0\n[settings]"),
        ("rows > 0", "got 0"),
    ),
    (
        "recipe adjacency",
        lambda d: d.settle("[settings]", 'adjacency = "next"\n[settings]'),
        ("'next'", "add-remove", "replace-one"),
    ),
    (
        "recipe settings",
        lambda d: d.settle(f"[settings]\n{SETTINGS}", "settings = 3\n"),
        ("recipe.toml", "[settings]"),
    ),
    ("setting unknown", lambda d: d.settle("batch", "bath"), ("'bath'", "dp-merf", "batch")),
    (
        "setting zero",
        lambda d: d.settle("features = 20", "features = 0"),
        ("features > 0", "got 0"),
    ),
    (
        "setting odd",
        lambda d: d.settle("features = 20", "features = 21"),
        ("features", "got 21"),
    ),
    (
        "setting text",
        lambda d: d.settle("features = 20", 'features = "a"'),
        ("features", "whole number", "'a'"),
    ),
    (
        "setting broken",
        lambda d: d.settle("steps = 2", "steps = 2.5"),
        ("steps", "whole number", "2.5"),
    ),
    (
        "setting truth",
        lambda d: d.settle("steps = 2", "steps = true"),
        ("steps", "whole number", "True"),
    ),
    ("setting single", lambda d: d.settle("[4]", "4"), ("hidden", "[200, 200]", "4")),
    ("setting list", lambda d: d.settle("[4]", '["4"]'), ("hidden", "'4'")),
    ("setting empty", lambda d: d.settle("[4]", "[]"), ("hidden",)),
    (
        "setting negative",
        lambda d: d.settle("[4]", "[4]\nlength_scales = [-1.0]"),
        ("length_scales", "-1"),
    ),
    (
        "setting nan",
        lambda d: d.settle("[4]", "[4]\nnumber_weight = nan"),
        ("number_weight", "nan"),
    ),
    (
        "method and recipe",
        lambda d: [*d.distill(recipe=d.recipe()), "--method", "dp-hp"],
        ("--method dp-hp", "dp-merf", "contradicts"),
    ),
]
