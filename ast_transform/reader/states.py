# SPDX-License-Identifier: Apache-2.0
"""What the reader knows while it reads a function: one record for each subject, all of them held by a `Reader`.

The reader is an abstract interpreter: it executes a function's tree in Python's order, on values of which only kinds
are known, and a `Builder` collects the statements of the array form that remain.  Each function of this folder takes a
`Reader` first and says by the records that it reads and changes what it depends on:

- names: `environment` (frames and what they were read from), `context` (what is around the statement that is read)
- memory: `memory` (storages and writes), `views`, `choices` (arrays that depend on a branch)
- containers: `containers` (Python's lists, dicts and objects), `lists` (those whose length is known only when running)
- `loops`, `kinds` (values whose dtype depends on the path), `outer` (objects from outside that are written), `draws`

>>> from gradscribe.ast_transform.reader.states import Reader
>>> reader = Reader()
>>> reader.environment.stack, reader.memory.writes, reader.build.block
([], 0, [])
"""
from typing import Any

from gradscribe.ast_transform.passes.anf import Builder


class Environment:
    """Frames, and what their names were read from."""

    def __init__(self) -> None:
        self.stack: list = []           # frames of the calls that are being read, the innermost last
        self.captured: dict = {}        # arrays from outside the function, by id: (variable, array)
        self.functions: dict = {}       # functions of the user's that were read: code and defaults, see source/read.py
        self.enclosing: list = []       # frames that inner functions see
        self.guards: list = []          # (scope, name, value) of names from outside: the version holds while they stay
        self.kind_guards: list = []     # objects whose attributes were read: the version holds while they stay
        self.partly_read: set = set()   # names that were read where a path may have left them unset
        self.bound_names = 0            # how many names expressions have set
        self.returned_at: Any = None    # origin of the return statement that was read last
        self.within: tuple = ()         # names of the functions of jit and pmap that are being read
        self.lifting: list = []         # containers from outside of which an item is being read

    @property
    def frame(self) -> Any:
        """The frame of the innermost call."""
        return self.stack[-1]


class Context:
    """What is around the statement that is read."""

    def __init__(self) -> None:
        self.rule_depth = 0             # how many parts of rules are being read, one inside the other
        self.within_derivative = False  # a derivative is read: its function is given values and writes none of them
        self.axes: dict = {}            # length of each axis that a vmap has named, by its name
        self.from_source: Any = None    # a function with a rule of the user's that is read all the same
        self.without_rule: Any = None   # a function whose own derivative its batch does not have, see vmap/batch.py
        self.instead: dict = {}         # {function: the ufunc that is read where it is called}
        self.errstate: dict = {}        # the warnings that the function does not show
        self.tries: list = []           # each try that is being read: its block, and what its handlers take
        self.handled: list = []         # the exceptions whose handlers are being read
        self.for_array = False          # what is read is an argument of np.array
        self.label: Any = None          # the name of the function that a transformation makes


class Memory:
    """Storages, and the writes into them."""

    def __init__(self) -> None:
        self.tokens: dict = {}          # the storages that an array may be in
        self.entry_tokens: frozenset = frozenset()      # the variables of the parameters
        self.writes = 0                 # how many writes there have been
        self.written: list = []         # what each write has changed: storages, or the mark of a container
        self.writes_arguments = False   # whether an argument is written
        self.possible_storages: dict = {}       # which storages from before a loop a value that it leaves may be in
        self.owned: set = set()         # variables that were made for one name
        self.pending: list = []         # values that an expression holds while the rest of it is read


class Views:
    """Arrays that show the memory of another."""

    def __init__(self) -> None:
        self.layouts: dict = {}         # whether an array lies row by row in memory
        self.flats: dict = {}           # views of all entries, row by row
        self.cells: set = set()         # values that are one of several, arrays without axes among them
        self.own_views: dict = {}       # how a function of the user's that has a rule shows its argument, by call
        self.views_after: list = []     # what a loop leaves that shows something else that it leaves
        self.walked: dict = {}          # rows that loops walk over, as views of their source


class Choices:
    """Arrays that are one of two, by the test of a branch."""

    def __init__(self) -> None:
        self.sides: dict = {}           # by variable: the test, and what it is on either side
        self.arm_only: set = set()      # arrays that have a value in one arm only
        self.ended: list = []           # branches that have been read
        self.made_in: dict = {}         # the branch in whose arm an array was made
        self.partly: set = set()        # values that a path may leave unset


class Containers:
    """Lists, tuples, dicts and objects of Python."""

    def __init__(self) -> None:
        self.outside: set = set()       # those of the user's module and closures: never changed
        self.frozen: set = set()        # those that an iterator reads later: they may not change any more
        self.origins: dict = {}         # what a container may be that a branch has chosen, by mark
        self.given_marks: set = set()   # marks of those that are arguments
        self.given_changed: Any = None  # where one of them is changed
        self.callers: set = set()       # marks of those that stand for objects of registered classes
        self.late: dict = {}            # what Python reads when it goes through an iterator, by its mark
        self.shown_lists: dict = {}     # lists of unknown length that an iterator will read, by its mark
        self.own_lists: set = set()     # marks of lists that comprehensions fill: nothing else sees them change
        self.apart = False              # whether containers that are arguments are read at once


class Lists:
    """Lists whose length is known only when running."""

    def __init__(self) -> None:
        self.iterated: list = []        # those that a loop being read iterates over
        self.uneven: dict = {}          # those that a branch leaves in two lengths, by mark: what they hold
        self.carried: set = set()       # those that loops carry
        self.row_lists: set = set()     # those that stand in such a list
        self.chosen_rows: set = set()   # arrays of which a row stands for an element that is chosen when running
        self.put_in: frozenset = frozenset()            # the storages that they show


class Loops:
    """The loops that are being read."""

    def __init__(self) -> None:
        self.reading: list = []         # from the outermost to the innermost
        self.countable: dict = {}       # by place: (number of passes, the places of the loops around)
        self.around: list = []          # places of those that are being read
        self.unrolled: set = set()      # places of those that are written out
        self.counted: list = []         # numbers of passes that are computed from arguments
        self.natural_indices: set = set()               # indices that are not negative
        self.must_stay = True           # the loop that is read cannot be written out
        self.written_in_loop: Any = None                # what the loop that was read last has written into, by storage


class Kinds:
    """Values whose dtype depends on the path."""

    def __init__(self) -> None:
        self.ints_or_floats: set = set()                # arrays of floats that are ints on one path
        self.of_either_kind: set = set()                # truth values that are Python's on one path, NumPy's on another
        self.of_one_kind: set = set()   # parameters of functions derived or mapped inside: certainly not
        self.dtypes_by_path = False     # whether a value has another dtype on another path: conversions stay then


class Outer:
    """Objects and arrays from outside the function that it writes: read at its beginning, written back at its end."""

    def __init__(self) -> None:
        self.stateful: list = []        # (object, attribute) that is written
        self.places: dict = {}          # where each object stands among them, by id
        self.names: dict = {}           # a name for each object, by id
        self.inputs: list = []          # parameters for what they hold at the beginning
        self.outputs: list = []         # what is to be written back at the end
        self.argument_outputs: list = []                # the same of arguments
        self.arguments_before: Any = None
        self.arguments_now: Any = None
        self.before: Any = None         # what they held at the beginning
        self.now: Any = None
        self.root: Any = None           # the outermost block
        self.lists_read: set = set()    # ids of lists from outside that were read
        self.appended: list = []        # what is appended to lists from outside


class Draws:
    """Streams of random numbers."""

    def __init__(self) -> None:
        self.begun: dict = {}           # what was drawn when a draw began
        self.seeded: dict = {}          # the same by generator
        self.drawn = 0                  # how many draws there have been
        self.drawn_at: Any = None       # where the last one stands


class Reader:
    """Reads functions; `unroll` takes containers apart entirely, as Numba needs it; `engine` is the pipeline."""

    def __init__(self, unroll: bool = False, engine: Any = None) -> None:
        self.build, self.unroll, self.engine = Builder(), unroll, engine
        self.build.to_read = not unroll
        self.arrangements: list = []    # passes over the finished function that reading has asked for
        self.environment, self.context = Environment(), Context()
        self.memory, self.views, self.choices = Memory(), Views(), Choices()
        self.containers, self.lists = Containers(), Lists()
        self.loops, self.kinds = Loops(), Kinds()
        self.outer, self.draws = Outer(), Draws()

    def reads_with(self, other: "Reader") -> None:
        """Share the guards of another reader, for which this one reads a helper."""
        self.environment.guards, self.environment.functions = other.environment.guards, other.environment.functions
