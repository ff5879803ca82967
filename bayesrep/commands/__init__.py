"""Commands of the command line: one module each, which holds all that is the command's own.

Each has `EXAMPLE`, the arguments with which its help ends; `add(parser)`, what it takes; and
`run(arguments)`, which does it, prints and gives the exit status; `describe_kept(arguments)` says
what an interrupt leaves behind. No command states a default of the library's.
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
