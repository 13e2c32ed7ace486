"""Releases that `verify` refuses: changed, incomplete, forged."""

from __future__ import annotations

from typing import Any

from desk import Builder, Case, Desk, mend_sums


def verify_changed(desk: Desk) -> list[str]:
    folder = desk.release()
    with open(folder / "data.csv", "a") as file:
        file.write("1,Ulm,no\n")
    return ["verify", str(folder)]


def verify_extra(desk: Desk) -> list[str]:
    desk.release()
    desk.file("release/notes.txt", "")
    return ["verify", str(desk.folder / "release")]


def verify_lacking(desk: Desk) -> list[str]:
    folder = desk.release()
    (folder / "data.parquet").unlink()
    return ["verify", str(folder)]


def verify_schema(desk: Desk) -> list[str]:
    folder = desk.release()
    text = (folder / "schema.toml").read_text()
    (folder / "schema.toml").write_text(text.replace("max = 99", "max = 98"))
    mend_sums(folder)
    return ["verify", str(folder)]


def verify_text(text: str) -> Builder:
    def build(desk: Desk) -> list[str]:
        folder = desk.release()
        (folder / "certificate.json").write_text(text)
        mend_sums(folder)
        return ["verify", str(folder)]

    return build


def forged(*road: str | int, to: Any) -> Builder:
    """The certificate with one figure replaced, or (None) left out."""

    def change(certificate: dict[str, Any]) -> None:
        at: Any = certificate
        for step in road[:-1]:
            at = at[step]
        if to is None:
            del at[road[-1]]
        else:
            at[road[-1]] = to

    return lambda desk: desk.forge(change)


CERTIFICATE = "certificate"

RELEASES: list[Case] = [
    ("verify nothing", lambda d: ["verify", "nothing"], ("nothing", "not a release", "SHA256SUMS")),
    ("verify a file", lambda d: ["verify", str(d.file("a.txt", ""))], ("a.txt", "not a release")),
    ("verify a folder", lambda d: ["verify", str(d.folder)], ("not a release", "SHA256SUMS")),
    ("changed data", verify_changed, ("data.csv", "was changed")),
    ("extra file", verify_extra, ("notes.txt", "does not list")),
    ("lacking file", verify_lacking, ("lacks data.parquet", "SHA256SUMS")),
    ("forged schema", verify_schema, ("schema.toml", CERTIFICATE)),
    ("forged claim", forged("guarantee", "epsilon", to=0.5), ("cost epsilon", "0.5 claimed")),
    (
        "forged epsilon",
        forged("accounting", "epsilon", to=0.5),
        ("epsilon = 0.5", "its charges give"),
    ),
    ("forged delta", forged("guarantee", "delta", to=1e-9), (CERTIFICATE, "its charges give")),
    (
        "forged noise",
        forged("charges", 1, "noise_multiplier", to=99.0),
        (CERTIFICATE, "its charges give"),
    ),
    ("forged silence", forged("charges", 1, "noise_multiplier", to=0.0), (CERTIFICATE,)),
    ("forged sign", forged("charges", 1, "noise_multiplier", to=-2.0), (CERTIFICATE,)),
    ("forged kind", forged("charges", 1, "noise_multiplier", to="a"), (CERTIFICATE, "a number")),
    ("forged steps", forged("charges", 1, "steps", to=-1), (CERTIFICATE,)),
    ("forged mechanism", forged("charges", 1, "mechanism", to="magic"), (CERTIFICATE,)),
    ("forged charge", forged("charges", 1, "sensitivity", to=None), (CERTIFICATE, "sensitivity")),
    ("forged charges", forged("charges", to=[]), (CERTIFICATE,)),
    ("forged adjacency", forged("guarantee", "adjacency", to="x"), (CERTIFICATE, "'x'")),
    ("no stamp", forged("releasable", to=None), (CERTIFICATE, "releasable")),
    (
        "no reasons",
        forged("not_releasable_because", to=None),
        (CERTIFICATE, "not_releasable_because"),
    ),
    ("no word on data", forged("data", to=None), (CERTIFICATE, "data")),
    ("no unit", forged("guarantee", "unit_of_privacy", to=None), (CERTIFICATE, "unit_of_privacy")),
    ("no basis", forged("accounting", "basis", to=None), (CERTIFICATE, "basis")),
    ("other version", forged("version", to=99), (CERTIFICATE, "version 1")),
    ("empty certificate", verify_text(""), (CERTIFICATE,)),
    ("list as certificate", verify_text("[]"), (CERTIFICATE,)),
    ("number as certificate", verify_text("3"), (CERTIFICATE,)),
    (
        "words as certificate",
        verify_text("dear diary"),
        (CERTIFICATE,),
    ),
]
