"""Printed tables, figures and pages: everything that a person looks at.

The room itself can be called: `bayesrep.report(study, posterior)` is `bayesrep.report.notebook`'s.
"""

import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    """A function of the room's own name, which it would hide: the module takes the call."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        from bayesrep.report.notebook import report

        return report(*arguments, **options)


sys.modules[__name__].__class__ = _Room
