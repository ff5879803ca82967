"""Run the command line as ``python -m bayesrep``."""

import sys

from bayesrep.cli import main

if __name__ == "__main__":
    sys.exit(main())
