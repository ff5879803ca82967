"""Run the command line as ``python -m bayesrep``."""

from bayesrep.cli import run_process

if __name__ == "__main__":
    run_process()
