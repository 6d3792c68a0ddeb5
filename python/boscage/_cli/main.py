"""The command ``boscage``: runs a command, and prints errors and warnings in a line each."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from boscage._cli.arguments import parser
from boscage._cli.errors import UserError, WrongUsage
from boscage._cli.outputs import STDOUT, naming
from boscage._cli.wording import in_flags

#: Exit codes: for wrong usage or input as of argparse, for Ctrl-C as of a shell.
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
        # Errors of other outputs name their files where these are written.
        with naming(STDOUT):
            args = parser().parse_args(argv)
            name = f"boscage {args.command}"
            with warnings.catch_warnings():
                warnings.showwarning = _warner(name)
                # `fit` says so in its own words.
                warnings.filterwarnings("ignore", "column .* is taken for categories")
                import_module(f"boscage._cli.commands.{args.command}").run(args)
                sys.stdout.flush()
    except WrongUsage as error:
        return _complain(error.command, str(error))
    except UserError as error:
        return _complain(name, str(error))
    except BrokenPipeError:
        # The reader of our output has seen enough.
        _discard_output()
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        extra = EXTRAS[package]
        return _complain(name, f"this command needs {package}: pip install 'boscage[{extra}]'")
    except OSError as error:
        if error.filename == STDOUT:
            _discard_output()
        named = error.filename is not None
        return _complain(name, f"{error.filename}: {error.strerror}" if named else str(error))
    except MemoryError as error:
        return _complain(name, in_flags(str(error)) or "there is not enough memory")
    except KeyboardInterrupt:
        print(f"{name}: interrupted, nothing was written", file=sys.stderr)
        return INTERRUPTED
    return 0


def _warner(name: str) -> Any:
    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        text = " ".join(str(message).splitlines())
        print(f"{name}: warning: {in_flags(text)}", file=sys.stderr)

    return show


def _discard_output() -> None:
    """Do not fail again while flushing at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _complain(name: str, text: str) -> int:
    """Print an error, in one line whatever the text."""
    print(f"{name}: error: {' '.join(text.splitlines())}", file=sys.stderr)
    return MISTAKE
