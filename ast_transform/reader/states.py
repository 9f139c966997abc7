# SPDX-License-Identifier: Apache-2.0
"""The state of the reader while it reads a function: one class for each subject, all of them attributes of a `Reader`.

The reader is an abstract interpreter: it executes a function's tree in Python's order on abstract values, and a
`Builder` collects the statements of the array form that remain.  The first argument of each function in this folder is
a `Reader`; the attributes that it uses show what it depends on:

- names: `environment` (frames and guards), `context` (what surrounds the statement that is being read)
- memory: `memory` (storages and writes), `views`, `choices` (arrays that depend on a branch)
- containers: `containers` (Python's lists, dicts and objects), `lists` (lists whose length is known only at run time)
- `loops`, `kinds` (values whose dtype depends on the path), `outer` (objects from outside that are written), `draws`

>>> from gradscribe.ast_transform.reader.states import Reader
>>> reader = Reader()
>>> reader.environment.stack, reader.memory.writes, reader.build.block
([], 0, [])
"""
from typing import Any

from gradscribe.ast_transform.passes.anf import Builder


class Environment:
    """Frames, and the names that were read from outside the function."""

    def __init__(self) -> None:
        self.stack: list = []           # frames of the calls that are being read, innermost last
        self.captured: dict = {}        # {id of a captured array: (variable, array)}
        self.functions: dict = {}       # the user's functions that were read: code and defaults, see source/read.py
        self.enclosing: list = []       # enclosing frames of inner functions
        self.guards: list = []          # (scope, name, value) of captured names that must keep this value
        self.kind_guards: list = []     # functions that return whether captured objects are unchanged
        self.partly_read: set = set()   # names that were read while possibly unset
        self.bound_names = 0            # the number of names set by expressions
        self.returned_at: Any = None    # the origin of the last return statement
        self.within: tuple = ()         # names of the jit and pmap functions that are being read
        self.lifting: list = []         # containers from outside of which an item is being read

    @property
    def frame(self) -> Any:
        """The frame of the innermost call."""
        return self.stack[-1]


class Context:
    """What surrounds the statement that is being read."""

    def __init__(self) -> None:
        self.rule_depth = 0             # the nesting depth of parts of rules that are being read
        self.within_derivative = False  # in a derivative: the function may not write into its arguments
        self.axes: dict = {}            # {name of a vmap's axis: its length}
        self.from_source: Any = None    # a function with a custom rule whose body is read nevertheless
        self.without_rule: Any = None   # a function whose batch does not use its custom derivative, see vmap/batch.py
        self.instead: dict = {}         # {function: the ufunc that replaces it in calls}
        self.errstate: dict = {}        # warnings that np.errstate suppresses
        self.tries: list = []           # (block, exceptions that are caught) of each try that is being read
        self.handled: list = []         # the exceptions whose handlers are being read
        self.for_array = False          # an argument of np.array is being read
        self.label: Any = None          # the name of the function that a transformation makes


class Memory:
    """Storages and the writes into them."""

    def __init__(self) -> None:
        self.tokens: dict = {}          # {array: the storages that it may be in}
        self.entry_tokens: frozenset = frozenset()      # the variables of the parameters
        self.writes = 0                 # the number of writes so far
        self.written: list = []         # what each write changed: storages, or the mark of a container
        self.writes_arguments = False   # whether an argument is written
        self.possible_storages: dict = {}       # {value after a loop: storages from before it that it may be in}
        self.owned: set = set()         # variables with a single name and no other alias
        self.pending: list = []         # values of an expression that is partly evaluated


class Views:
    """Views: arrays that share the memory of another."""

    def __init__(self) -> None:
        self.layouts: dict = {}         # {array: whether it is C-contiguous}
        self.flats: dict = {}           # flat views of all entries, row by row
        self.cells: set = set()         # values that may be 0-d arrays
        self.own_views: dict = {}       # {call of a function with a custom rule: its result as a view}
        self.views_after: list = []     # names to be set to views of arrays after a loop
        self.walked: dict = {}          # {row that a loop iterates over: its view of the source}


class Choices:
    """Arrays that are one of two, depending on the test of a branch."""

    def __init__(self) -> None:
        self.sides: dict = {}           # {variable: Choice}
        self.arm_only: set = set()      # arrays that exist in one arm only
        self.ended: list = []           # branches that have been read
        self.made_in: dict = {}         # {array: the branch in whose arm it was made}
        self.partly: set = set()        # values that a path may leave unset


class Containers:
    """Python's lists, tuples, dicts and objects."""

    def __init__(self) -> None:
        self.outside: set = set()       # captured containers, which are never changed
        self.frozen: set = set()        # containers that an iterator reads later: no longer changed
        self.origins: dict = {}         # {mark: marks of the containers that a branch may have chosen}
        self.given_marks: set = set()   # marks of containers that are arguments
        self.given_changed: Any = None  # where an argument is changed
        self.callers: set = set()       # marks of containers that represent objects of registered classes
        self.late: dict = {}            # {mark of an iterator: what Python reads later from it}
        self.shown_lists: dict = {}     # {mark of an iterator: lists of unknown length that it will read}
        self.own_lists: set = set()     # marks of lists that comprehensions fill, which have no alias
        self.apart = False              # whether container arguments are split into parts at the start


class Lists:
    """Lists whose length is known only at run time."""

    def __init__(self) -> None:
        self.iterated: list = []        # lists that loops being read iterate over
        self.uneven: dict = {}          # {mark of a list that a branch leaves in two lengths: its elements}
        self.carried: set = set()       # lists that loops carry
        self.row_lists: set = set()     # lists in rows of such a list
        self.chosen_rows: set = set()   # stacked elements, one of which is chosen at run time
        self.put_in: frozenset = frozenset()            # storages of the arrays that were put into lists


class Loops:
    """The loops that are being read."""

    def __init__(self) -> None:
        self.reading: list = []         # from the outermost to the innermost
        self.countable: dict = {}       # {place: (number of passes, places of the enclosing loops)}
        self.around: list = []          # places of the loops that are being read
        self.unrolled: set = set()      # places of the loops that are unrolled
        self.counted: list = []         # numbers of passes that are computed from arguments
        self.natural_indices: set = set()               # indices that are never negative
        self.must_stay = True           # the loop being read cannot be unrolled
        self.written_in_loop: Any = None                # {storage: array} that the last loop wrote


class Kinds:
    """Values whose dtype depends on the path."""

    def __init__(self) -> None:
        self.ints_or_floats: set = set()                # arrays of floats that are ints on one path
        self.of_either_kind: set = set()                # booleans that are Python's on one path, NumPy's on another
        self.of_one_kind: set = set()   # parameters of inner derived or mapped functions, which are certainly not
        self.dtypes_by_path = False     # whether a dtype depends on the path, so that conversions are kept


class Outer:
    """Captured objects and arguments that the function writes: read at its start, written back at its end."""

    def __init__(self) -> None:
        self.stateful: list = []        # the objects whose attributes are written
        self.places: dict = {}          # {id of an object: its position among them}
        self.names: dict = {}           # {id of an object: its name}
        self.inputs: list = []          # parameters for their values at the start
        self.outputs: list = []         # values to write back at the end
        self.argument_outputs: list = []                # the same for arguments
        self.arguments_before: Any = None
        self.arguments_now: Any = None
        self.before: Any = None         # their values at the start
        self.now: Any = None
        self.root: Any = None           # the outermost block
        self.lists_read: set = set()    # ids of captured lists that were read
        self.appended: list = []        # appends to captured lists


class Draws:
    """Streams of random numbers."""

    def __init__(self) -> None:
        self.begun: dict = {}           # {draw: number of draws before its stream was seeded; -1 if never}
        self.seeded: dict = {}          # {generator: number of draws before it was seeded}
        self.drawn = 0                  # the number of draws so far
        self.drawn_at: Any = None       # the origin of the last draw


class Reader:
    """Reads functions; unroll: split all containers into their items, as Numba needs it; engine: the pipeline."""

    def __init__(self, unroll: bool = False, engine: Any = None) -> None:
        self.build, self.unroll, self.engine = Builder(), unroll, engine
        self.build.to_read = not unroll
        self.arrangements: list = []    # passes that must run on the finished function
        self.environment, self.context = Environment(), Context()
        self.memory, self.views, self.choices = Memory(), Views(), Choices()
        self.containers, self.lists = Containers(), Lists()
        self.loops, self.kinds = Loops(), Kinds()
        self.outer, self.draws = Outer(), Draws()

    def reads_with(self, other: "Reader") -> None:
        """Share the guards of another reader, for which this one reads a helper function."""
        self.environment.guards, self.environment.functions = other.environment.guards, other.environment.functions
