"""Python files of one's own that register models and estimators: named by users, never by data."""

import importlib.util
import os
import sys
from pathlib import Path
from types import ModuleType

from bayesrep.errors import OptionError

PLUGINS_VAR = "BAYESREP_PLUGINS"  # such files, separated as in PATH; every process runs them once

_modules = dict[str, ModuleType]()  # by path, begun to run: one may ask for another's models


def run_plugin(path: str) -> ModuleType:
    """Run a file once in a process, and return its module."""
    file = Path(path).expanduser().resolve()
    if str(file) in _modules:
        return _modules[str(file)]
    spec = importlib.util.spec_from_file_location(f"bayesrep_plugin_{file.stem}", file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise OptionError("plugin-not-a-file", path=path)
    module = _modules[str(file)] = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look their annotations up
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del _modules[str(file)], sys.modules[spec.name]
        problem = f"{type(error).__name__}: {error}"
        raise OptionError("plugin-failed", path=path, problem=problem) from error
    return module


def run_plugins() -> None:
    """Run the files that the environment names."""
    for path in filter(None, os.environ.get(PLUGINS_VAR, "").split(os.pathsep)):
        run_plugin(path)
