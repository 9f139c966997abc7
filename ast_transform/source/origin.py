# SPDX-License-Identifier: Apache-2.0
"""The place in the user's file that a statement or expression came from."""
import linecache
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Origin:
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    statement: str = field(default="", compare=False)       # the first line of the user's statement
    begins: int = field(default=0, compare=False)           # the line where that statement begins; 0: `line`
    augments: bool = field(default=False, compare=False)    # whether that statement is x += v
    caller: "Origin | None" = None      # the call that led here
    generated: int = field(default=0, compare=False)        # 0: the user's, 1: the backward sweep's, 2: a tangent
    errors: tuple = field(default=(), compare=False)        # what raises here, by np.errstate: ("divide", "invalid")
    within: tuple = field(default=(), compare=False)        # the functions made by jit and pmap that it belongs to
    rules: tuple = field(default=(), compare=False)         # the parts of rules that made it, as text
    identities: tuple = field(default=(), compare=False)    # the identities that have simplified it, as text

    def text(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\n")

    def called_from(self, caller) -> "Origin":
        return replace(self, caller=caller)

    def made_by(self, generated: int) -> "Origin":
        """The same place, for a statement that a transformation adds."""
        return replace(self, generated=generated)

    def by_rule(self, part: str) -> "Origin":
        """The same place, for a statement made by a part of a rule."""
        return replace(self, rules=tuple(dict.fromkeys((*self.rules, part))))

    def shortened(self, identities: tuple, rules: tuple = ()) -> "Origin":
        """The same place, for a statement that identities have simplified; rules: those of the statements merged."""
        return replace(self, rules=tuple(dict.fromkeys((*self.rules, *rules))),
                       identities=tuple(dict.fromkeys((*self.identities, *identities))))

    def heading(self) -> "Origin":
        """The same place, for a comment."""
        return replace(self, rules=(), identities=())

    def raised(self) -> tuple:
        """The floating-point errors that raise here: only user's statements raise, generated ones warn."""
        return () if self.generated else self.errors

    def same_statement(self, other) -> bool:
        return other is not None and self.file == other.file and \
            (self.begins or self.line) == (other.begins or other.line) and \
            self.statement == other.statement and self.caller == other.caller
