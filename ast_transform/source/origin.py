# SPDX-License-Identifier: Apache-2.0
"""Where a statement or expression came from: the user's file, line and columns."""
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
    begins: int = field(default=0, compare=False)           # where that statement begins; 0: as far as the line says
    caller: "Origin | None" = None      # the call that led here
    generated: int = field(default=0, compare=False)        # 0: the user's, 1: the backward sweep's, 2: a tangent
    errors: tuple = field(default=(), compare=False)        # what raises here, by np.errstate: ("divide", "invalid")
    within: tuple = field(default=(), compare=False)        # the functions made by jit and pmap that it belongs to
    reasons: tuple = field(default=(), compare=False)       # the rules and identities that made it, in words

    def text(self) -> str:
        return linecache.getline(self.file, self.line).rstrip("\n")

    def called_from(self, caller) -> "Origin":
        return replace(self, caller=caller)

    def made_by(self, generated: int) -> "Origin":
        """The same place, for a statement that a transformation adds."""
        return replace(self, generated=generated)

    def because(self, *reasons: str) -> "Origin":
        """The same place, for a statement that these rules or identities have made."""
        return replace(self, reasons=tuple(dict.fromkeys((*self.reasons, *reasons)))) if reasons else self

    def raised(self) -> tuple:
        """The floating-point errors that raise where a statement of the user's stands; those that we add only warn."""
        return () if self.generated else self.errors

    def same_statement(self, other) -> bool:
        return other is not None and self.file == other.file and \
            (self.begins or self.line) == (other.begins or other.line) and \
            self.statement == other.statement and self.caller == other.caller
