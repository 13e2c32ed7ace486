"""The small grammar of rules. Nothing is evaluated: a text becomes one of the nouns of `rule.py`.

    rule        =  column ORDER column [sign offset]
                |  column "==" [sign] column {sign column} [sign offset]
                |  column "->" column
                |  "not" "(" condition {"and" condition} ")"
                |  "if" condition {"and" condition} "then" condition {"or" condition}
    condition   =  column ("=" | "!=") value  |  column ["not"] "in" "(" value {"," value} ")"
                |  column ORDER constant
    offset      =  number [unit of time]

Names and values with blanks or signs stand in quotes, single or double.
"""

from __future__ import annotations

import re
from typing import NamedTuple, NoReturn

from ...errors import SchemaError
from .rule import Atom, Combination, Dependence, Offset, Order, Rule, Total

ORDER = (">=", "<=", ">", "<")
EQUAL = ("==", "=")
TURNED = {"=>": ">=", "=<": "<="}
"""Signs that are none, and what is meant."""
KEYWORDS = ("not", "if", "then", "and", "or", "in")
LONGEST = 2000
"""Letters of a rule, at most."""
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<quoted>'[^']*'|"[^"]*")
    |(?P<date>\d{4}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d)?)?)
    |(?P<number>\d+(?:\.\d+)?)
    |(?P<word>[^\W\d]\w*)
    |(?P<sign>->|=>|=<|>=|<=|==|!=|[=><+\-(),])
    )""",
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of a rule: its kind and its text, without quotes."""

    kind: str
    text: str

    def is_(self, *texts: str) -> bool:
        """Whether it is one of these signs or keywords; a text in quotes is none."""
        return self.kind in ("sign", "word") and self.text in texts


END = Token("end", "")


def parse_rule(text: object) -> Rule:
    """A rule's text, taken apart.

    >>> parse_rule("discharged >= admitted + 1 day").offset
    Offset(amount=1.0, unit='day')
    >>> parse_rule("bill == room + drugs - refund").parts
    ((1, 'room'), (1, 'drugs'), (-1, 'refund'))
    >>> parse_rule("if ward = maternity then sex = female").forbidden[1]
    Atom(column='sex', operator='not in', values=('female',))
    """
    if not isinstance(text, str) or not text.strip():
        raise SchemaError(f'rules: expected texts such as "discharged >= admitted", got {text!r}.')
    return _Parser(" ".join(text.split())).rule()


class _Parser:
    """Reads one rule from left to right."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        if len(text) > LONGEST:
            self.refuse(f"it is longer than {LONGEST} letters.")
        self.tokens = self._tokens()

    def _tokens(self) -> list[Token]:
        tokens, place = [], 0
        while place < len(self.text):
            match = _TOKEN.match(self.text, place)
            if match is None or match.lastgroup is None:
                self.refuse(
                    f"'{self.text[place:].strip()[:20]}' is not understood. Names and values with "
                    "blanks or signs stand in quotes."
                )
            kind, piece = match.lastgroup, match[match.lastgroup]
            if piece in TURNED:
                self.refuse(f"'{piece}' is no sign; '{TURNED[piece]}' is.")
            tokens.append(Token(kind, piece[1:-1] if kind == "quoted" else piece))
            place = match.end()
        return tokens

    def refuse(self, what: str) -> NoReturn:
        raise SchemaError(f"rule '{self.text}': {what}")

    @property
    def next(self) -> Token:
        return self.tokens[self.at] if self.at < len(self.tokens) else END

    def take(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or keywords, which is then passed."""
        if not self.next.is_(*texts):
            return False
        self.at += 1
        return True

    def expect(self, what: str, *texts: str) -> Token:
        token = self.next
        if not token.is_(*texts):
            self.refuse(f"expected {what}, got {self.shown(token)}.")
        self.at += 1
        return token

    def shown(self, token: Token) -> str:
        return "the end" if token is END else f"'{token.text}'"

    def name(self) -> str:
        token = self.next
        keyword = token.kind == "word" and token.text in KEYWORDS
        if token.kind not in ("word", "quoted") or keyword or not token.text:
            self.refuse(
                f"expected a column's name, got {self.shown(token)}. Bounds of one column are declared "
                "in the column; names with blanks or signs stand in quotes."
            )
        self.at += 1
        return token.text

    # ---- the grammar --------------------------------------------------------------------------------

    def rule(self) -> Rule:
        if self.take("not"):
            return self.finished(Combination(self.text, self.forbidden()))
        if self.take("if"):
            return self.finished(Combination(self.text, self.implied()))
        left = self.name()
        if self.take("->"):
            return self.finished(Dependence(self.text, left, self.name()))
        operator = self.expect("one of >=, >, <=, <, == or ->", *ORDER, *EQUAL).text
        parts, offset = self.sum()
        if operator in EQUAL:
            return self.finished(Total(self.text, left, parts, offset))
        if len(parts) > 1 or parts[0][0] < 0:
            self.refuse(
                "an order is between two columns, with a fixed offset at most. Declare a column for the "
                "sum, with a rule == of its own."
            )
        return self.finished(Order(self.text, left, operator, parts[0][1], offset))

    def finished(self, rule: Rule) -> Rule:
        if self.next is not END:
            self.refuse(f"expected the end, got {self.shown(self.next)}.")
        twice = sorted(n for n in set(rule.columns) if rule.columns.count(n) > 1)
        if twice:
            self.refuse(f"column '{twice[0]}' stands there twice.")
        return rule

    def sum(self) -> tuple[tuple[tuple[int, str], ...], Offset | None]:
        """Columns with their signs, then an offset at most."""
        parts: list[tuple[int, str]] = []
        sign = -1 if self.take("-") else 1
        while True:
            if parts and self.next.kind == "number":
                return tuple(parts), self.offset(sign)
            parts.append((sign, self.name()))
            if self.take("-"):
                sign = -1
            elif self.take("+"):
                sign = 1
            else:
                return tuple(parts), None

    def offset(self, sign: int) -> Offset:
        amount = float(self.next.text)
        self.at += 1
        unit = ""
        if self.next.kind == "word":
            unit = self.next.text
            self.at += 1
        return Offset(sign * amount, unit)

    def forbidden(self) -> tuple[Atom, ...]:
        """Conditions that do not hold together."""
        bracket = self.take("(")
        atoms = [self.condition()]
        while self.take("and"):
            atoms.append(self.condition())
        if bracket:
            self.expect("'and' or ')'", ")")
        return tuple(atoms)

    def implied(self) -> tuple[Atom, ...]:
        """What may not hold, so that one of the conditions behind "then" does."""
        atoms = [self.condition()]
        while self.take("and"):
            atoms.append(self.condition())
        self.expect("'and' or 'then'", "then")
        atoms.append(self.condition().opposite)
        while self.take("or"):
            atoms.append(self.condition().opposite)
        return tuple(atoms)

    def condition(self) -> Atom:
        column = self.name()
        if self.next.is_("in", "not"):
            operator = "not in" if self.take("not") else "in"
            self.expect("'in'", "in")
            self.expect("'(' before a list of values", "(")
            values = [self.value()]
            while self.take(","):
                values.append(self.value())
            self.expect("',' or ')'", ")")
            return Atom(column, operator, tuple(values))
        sign = self.expect("one of =, !=, in, >=, >, <= or <", "!=", *EQUAL, *ORDER).text
        words = {"=": "in", "==": "in", "!=": "not in"}
        return Atom(column, words.get(sign, sign), (self.value(),))

    def value(self) -> str:
        minus = "-" if self.take("-") else ""
        token = self.next
        wanted = ("number",) if minus else ("word", "quoted", "number", "date")
        if token.kind not in wanted:
            self.refuse(
                f"expected a value, got {self.shown(token)}. Values with blanks or signs stand in quotes."
            )
        self.at += 1
        if token.kind == "number" and self.next.kind == "word" and self.next.text not in KEYWORDS:
            token = Token("number", f"{token.text} {self.next.text}")  # such as 2 days
            self.at += 1
        return minus + token.text
