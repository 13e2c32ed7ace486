"""Commands that do as they are told: help, plans, the ledger, names as they were written."""

from __future__ import annotations

import json
import sqlite3

from desk import Desk, check_refused, command, overspend, planning, spend


def test_no_command_shows_help(desk: Desk) -> None:
    got = desk.run([])
    assert (got.code, got.err) == (2, "")
    assert "distill" in got.out


def test_lifetime_set_keeps_its_filter(desk: Desk) -> None:
    filtered = desk.schema("delta = 1e-4", 'delta = 1e-4\nfilter = "sum"')
    assert desk.run(desk.distill(schema=filtered)).code == 0
    assert desk.run(["ledger", "--set", "people", "--epsilon", "3", "--delta", "0.001"]).code == 0
    assert desk.accounts()[0]["lifetime"] == {"epsilon": 3, "delta": 0.001, "filter": "sum"}


def test_names_are_no_markup(desk: Desk) -> None:
    """What the owner writes is printed as it is, not taken for the printer's own signs."""
    words = desk.distill(
        schema=desk.schema('"people"', '"[/red] people"\nunit = "one [/bold] row"'),
        out=desk.folder / "out[a]",
    )
    got = desk.run(words)
    assert got.code == 0 and "out[a]" in got.out and "one [/bold] row" in got.out
    assert "[/red] people" in desk.run(["ledger"]).out
    assert "one [/bold] row" in desk.run(["verify", str(desk.folder / "out[a]")]).out


def test_plan_says_that_distill_would_refuse(desk: Desk) -> None:
    words = planning(overspend(desk))
    told, facts = (desk.run([*words, *more]) for more in ((), ("--json",)))
    assert (told.code, facts.code) == (0, 0), told.err + facts.err
    why = json.loads(facts.out)["refused_because"]
    assert "Budget spent" in why and f"`distill` would refuse this run: {why}" in told.out


def test_a_plan_within_the_budget_is_not_refused(desk: Desk) -> None:
    words = planning(desk.distill())
    assert "refuse" not in desk.run(words).out
    assert json.loads(desk.run([*words, "--json"]).out)["refused_because"] is None


def test_a_large_delta_is_warned_of(desk: Desk) -> None:
    words = planning(desk.distill("--delta", "6e-4"))
    done = command(desk, words)
    out, err = done.communicate(timeout=240)
    assert done.returncode == 0 and "Together" in out
    assert err.startswith("limbeck: warning: delta 0.0006 is large") and err.count("\n") == 1


def test_the_ledger_is_checked(desk: Desk) -> None:
    spend(desk)
    whole = desk.run(["ledger", "check"])
    assert whole.code == 0 and "none was edited" in whole.out
    seal = json.loads(desk.run(["ledger", "check", "--json"]).out)
    assert seal["digest"] in whole.out
    assert desk.run(["ledger", "check", "--noted", seal["digest"]]).code == 0
    with sqlite3.connect(desk.ledger) as database:
        database.execute("DROP TRIGGER entries_stay")
        database.execute(
            "UPDATE entries SET content = replace(content, 'dp-', 'dq-') WHERE number = 2"
        )
    check_refused(desk, ["ledger", "check"], ("was edited", "entry 2", "'people'", "backup"))
