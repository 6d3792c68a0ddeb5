"""The command ``boscage``: runs a command, and says what becomes of errors."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from boscage._cli.arguments import parser
from boscage._cli.errors import UserError

#: Exit codes: for wrong usage or input argparse's own, for Ctrl-C a shell's.
MISTAKE, INTERRUPTED = 2, 130
#: Packages that some commands need, and the extra that installs them.
EXTRAS = {"pyarrow": "cli", "matplotlib": "plot"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        The arguments; by default those of the process.

    Returns
    -------
    int
        The exit code: 0, 2 where the arguments or the input are wrong, 130 after Ctrl-C.
    """
    name = "boscage"
    try:
        args = parser().parse_args(argv)
        name = f"boscage {args.command}"
        import_module(f"boscage._cli.{args.command}").run(args)
        sys.stdout.flush()
    except UserError as error:
        return _complain(name, str(error))
    except BrokenPipeError:
        # The reader of our output has seen enough; do not fail again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        return _complain(name, f"this command needs {package}: pip install 'boscage[{extra}]'")
    except OSError as error:
        named = error.filename is not None
        return _complain(name, f"{error.filename}: {error.strerror}" if named else str(error))
    except KeyboardInterrupt:
        print(f"{name}: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    return 0


def _complain(name: str, text: str) -> int:
    print(f"{name}: error: {text}", file=sys.stderr)
    return MISTAKE
