"""How it is asked for: one module a command, its arguments and what it does side by side.

The modules of a group's commands lie in the group's folder. Each has `add(parser)`, which says what
the command takes, and `run(arguments)`, which does it, prints and gives the exit status; where an
interrupt leaves something behind, also `describe_kept(arguments)`, which says what. A command
states no default of the library's: what is not asked for is not passed on. What takes long to
import is imported when the command runs.
"""
