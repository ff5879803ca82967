"""`bayesrep completion`: a script that completes commands and options, for bash, zsh or fish.

What is completed is written into the script, so that pressing Tab starts no Python. Where a word is
no command, option or choice, it is a file.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence

from bayesrep.commands import import_command
from bayesrep.commands.output import emit

EXAMPLE = "bash > bayesrep.bash"

SHELL_NAMES = ("bash", "zsh", "fish")
INSTALL_TEXTS: Mapping[str, str] = {
    "bash": 'eval "$(bayesrep completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(bayesrep completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "bayesrep completion fish > ~/.config/fish/completions/bayesrep.fish",
}
Options = Mapping[str, Sequence[str]]
"""The options of a command or of a group, each with the words that it takes; positional choices,
as the steps of a group, under ""."""


def add(parser: ArgumentParser) -> None:
    text = "; ".join(INSTALL_TEXTS.values())
    parser.add_argument("shell", choices=SHELL_NAMES, help=f"to install: {text.replace('%', '%%')}")


def run(arguments: Namespace) -> int:
    arguments.format = "text"  # a shell knows no other
    script = script_of(arguments.shell, arguments.commands)
    return emit(arguments, script, {"shell": arguments.shell, "script": script})


def script_of(shell: str, commands: Sequence[str]) -> str:
    """The script of a shell."""
    from bayesrep.report.figure_catalogue import FIGURE_ENTRIES

    options = {name: _options_of(name) for name in commands}
    for group, _, step in (name.partition(" ") for name in commands if " " in name):
        options[group] = {"": (*options.get(group, {"": ()})[""], step), "--help": ()}
    figures = tuple(each.name for each in FIGURE_ENTRIES)
    # No choices of the parser, whose message would list all of them.
    options["figure"] = {**options["figure"], "": figures}
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](options)


def _options_of(command: str) -> Options:
    """The options of a command."""
    parser = ArgumentParser(add_help=False, conflict_handler="resolve")
    parser.add_argument("--help")
    parser.add_argument("--json")
    parser.add_argument("--format", choices=("text", "markdown"))
    import_command(command).add(parser)
    options: dict[str, list[str]] = {}
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        words = [str(each) for each in action.choices or ()]
        for name in [each for each in action.option_strings if each.startswith("--")] or [""]:
            options.setdefault(name, []).extend(words)
    return options


def _list_first(commands: Mapping[str, Options]) -> str:
    """List the words that can follow the program's name: ungrouped commands, and groups."""
    return " ".join(name for name in commands if " " not in name)


def _bash(commands: Mapping[str, Options]) -> str:
    """A function over `COMP_WORDS`; zsh runs the same."""
    cases: list[str] = []
    for name, options in commands.items():
        chosen = "".join(
            f'      {option}) words="{" ".join(words)}" ;;\n'
            for option, words in options.items()
            if words and option
        )
        flags = " ".join(option for option in options if option)
        first = " ".join(options.get("", ()))
        cases.append(
            f'  "{name}")\n    flags="{flags}"; first="{first}"\n'
            + (f'    case "$before" in\n{chosen}    esac\n' if chosen else "")
            + "    ;;"
        )
    steps = "|".join(f'"{name}"' for name in commands if " " in name)
    return (
        "_bayesrep() {\n"
        '  local word="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"\n'
        '  local flags="" words="" first="" first_at=2 command="${COMP_WORDS[1]}"\n'
        '  if [ "$COMP_CWORD" -eq 1 ]; then\n'
        f'    COMPREPLY=($(compgen -W "{_list_first(commands)} --help --version" -- "$word"))\n'
        "    return\n  fi\n"
        '  if [ "$COMP_CWORD" -gt 2 ]; then\n'
        '    case "$command ${COMP_WORDS[2]}" in\n'
        f'    {steps}) command="$command ${{COMP_WORDS[2]}}"; first_at=3 ;;\n'
        "    esac\n  fi\n"
        '  case "$command" in\n' + "\n".join(cases) + "\n  esac\n"
        '  if [ "$COMP_CWORD" -eq "$first_at" ] && [ -n "$first" ]; then words="$first"; fi\n'
        '  case "$word" in -*) words="$flags" ;; esac\n'
        '  if [ -n "$words" ]; then\n'
        '    COMPREPLY=($(compgen -W "$words" -- "$word"))\n'
        '  else\n    COMPREPLY=($(compgen -f -- "$word"))\n  fi\n'
        "}\n"
        "complete -o filenames -F _bayesrep bayesrep"
    )


def _zsh(commands: Mapping[str, Options]) -> str:
    return f"autoload -U +X bashcompinit && bashcompinit\n{_bash(commands)}"


def _fish(commands: Mapping[str, Options]) -> str:
    lines = [
        "complete -c bayesrep -n __fish_use_subcommand -f "
        f"-a '{_list_first(commands)}' -d 'command of bayesrep'"
    ]
    for name, options in commands.items():
        typed = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in name.split())
        prefix = f"complete -c bayesrep -n '{typed}'"
        for option, words in options.items():
            choices = f" -a '{' '.join(words)}'" if words else ""
            if option:
                lines.append(f"{prefix} -l {option[2:]}" + (f" -x{choices}" if words else ""))
            elif words:
                lines.append(f"{prefix}{choices}")
    return "\n".join(lines)
