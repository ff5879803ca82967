"""Commands of the command line: one module each, which holds all that is the command's own.

The modules of a group's commands lie in the group's folder. Each has `EXAMPLE`, the arguments with
which its help ends; `add(parser)`, which says what the command takes; and `run(arguments)`, which
does it, prints and gives the exit status. Where an interrupt leaves something behind,
`describe_kept(arguments)` says what. A command states no default of the library's: what is not
asked for is not passed on. What takes long to import is imported when the command runs.
"""

from importlib import import_module
from keyword import iskeyword
from typing import Any


def import_command(name: str) -> Any:
    """The module of a command, by its whole name; of an import what imports the source."""
    if name.startswith("import "):
        return import_module("bayesrep.commands.import_").IMPORTS[name.removeprefix("import ")]
    module = f"{name.replace(' ', '.')}{'_' * iskeyword(name.split()[-1])}"
    return import_module(f"bayesrep.commands.{module}")
