# SPDX-License-Identifier: Apache-2.0
"""The accepted Python: a table of node types.  A node that is not listed is an error at the user's place.

>>> from gradscribe.ast_transform.passes.language import ACCEPTED, REFUSED
>>> "Yield" in REFUSED and "For" in ACCEPTED
True
"""
from typing import TYPE_CHECKING

import gast

from gradscribe.ast_transform.source.diagnose import LanguageError

if TYPE_CHECKING:
    from gradscribe.ast_transform.source.origin import Origin
    from gradscribe.ast_transform.source.read import Source

ACCEPTED = set("""
    FunctionDef Lambda arguments Return Assign AugAssign AnnAssign For While If Expr Pass Assert Raise Delete
    Break Continue With withitem Try ExceptHandler
    Match match_case MatchValue MatchSingleton MatchSequence MatchMapping MatchClass MatchStar MatchAs MatchOr
    Import ImportFrom alias keyword
    BoolOp BinOp UnaryOp IfExp Dict ListComp GeneratorExp DictComp comprehension Compare Call Constant Attribute
    Subscript Starred Name List Tuple Slice JoinedStr FormattedValue NamedExpr
    Load Store Del Param And Or Add Sub Mult Div FloorDiv Mod Pow MatMult BitAnd BitOr BitXor LShift RShift
    Invert Not UAdd USub Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn
""".split())

REFUSED = {                         # node type -> (what it is, the way out)
    "Global": ("writing a global variable cannot be undone in the backward sweep", "Return the value instead."),
    "Nonlocal": ("writing a variable of an outer function cannot be undone in the backward sweep",
                 "Return the value instead."),
    "Yield": ("a generator is not differentiated", "Return a list or a tuple instead."),
    "YieldFrom": ("a generator is not differentiated", "Return a list or a tuple instead."),
    "Await": ("asynchronous code is not differentiated", "Compute in a plain function."),
    "AsyncFor": ("asynchronous code is not differentiated", "Compute in a plain function."),
    "AsyncWith": ("asynchronous code is not differentiated", "Compute in a plain function."),
    "AsyncFunctionDef": ("asynchronous code is not differentiated", "Compute in a plain function."),
    "TryStar": ("except* is not differentiated", "Test for the condition with if before the operation."),
    "ClassDef": ("a class inside a differentiated function is not read", "Define it outside."),
    "SetComp": ("a set has no order, so the emitted source would not be the same twice", "Use a list."),
    "Set": ("a set has no order, so the emitted source would not be the same twice", "Use a list or a tuple."),
    "TemplateStr": ("a template string is not read", "Use an f-string."),
    "TypeAlias": ("a type alias inside a function is not read", "Define it outside."),
}


def check(source: "Source", caller: "Origin | None" = None) -> None:
    """Raise LanguageError at the first node outside the language; the tree is left as it is."""
    root = source.tree

    def visit(node, statement):
        name = type(node).__name__
        if isinstance(node, gast.stmt):
            statement = node
        if name in REFUSED:
            what, advice = REFUSED[name]
            raise LanguageError(what, source.origin(node, statement, caller), advice)
        if name not in ACCEPTED:
            raise LanguageError(f"{name} is not in the accepted language", source.origin(node, statement, caller),
                                "docs/errors.md lists what is accepted.")
        for field in node._fields:
            inner = getattr(node, field, None)
            if field in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in inner if isinstance(inner, list) else [inner]:
                if isinstance(child, gast.AST):
                    visit(child, statement)

    visit(root, root if isinstance(root, gast.stmt) else None)
