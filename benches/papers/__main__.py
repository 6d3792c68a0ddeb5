"""Run the papers' experiments, or those named, and write the report."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import traceback
import warnings
from pathlib import Path

from benches.papers import _data, _report
from benches.papers._report import Effort, Section
from sklearn.exceptions import ConvergenceWarning

HERE = Path(__file__).parent


def spent() -> float:
    """Processor seconds so far, with those of processes that have ended."""
    return sum(os.times()[:4])


def main() -> int:
    """Run the command."""
    names = sorted(path.stem for path in HERE.glob("ch*_*.py"))
    parser = argparse.ArgumentParser(prog="python -m benches.papers", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="less of everything, in ten minutes")
    parser.add_argument(
        "--seeds", type=int, help="number of seeds (default: each experiment's own)"
    )
    parser.add_argument(
        "--generated", action="store_true", help="small generated sets in place of the real ones"
    )
    parser.add_argument(
        "--out", type=Path, help="folder of the report (default: benches/results/papers)"
    )
    args = parser.parse_args()
    if unknown := set(args.names) - set(names):
        parser.error(
            f"no such experiment: {', '.join(sorted(unknown))}; there are {', '.join(names)}"
        )
    if args.seeds is not None and args.seeds < 1:
        parser.error(f"--seeds must be at least 1, found {args.seeds}")

    effort = Effort(quick=args.quick, seeds=args.seeds)
    kind = "papers-quick" if args.quick else "papers"
    folder: Path = args.out or HERE.parent / "results" / kind
    folder.mkdir(parents=True, exist_ok=True)
    _data.use_generated(args.generated)
    # Samplers that the thesis shows to mix badly warn that they do.
    warnings.simplefilter("ignore", ConvergenceWarning)
    failed = []
    for name in args.names or names:
        # Of the code that runs: files may be edited before a long run ends.
        commit = _report.commit()
        module = importlib.import_module(f"benches.papers.{name}")
        section = Section(name, module.TITLE, folder, dict(module.SETTINGS))
        print(f"# {name}: {module.TITLE}", flush=True)
        start = spent()
        try:
            module.run(section, effort)
        except Exception:
            # One experiment that fails must not cost the others' hours.
            traceback.print_exc()
            failed.append(name)
            continue
        took = spent() - start
        section.facts = _report.facts(took, effort, args.generated, commit)
        section.save()
        print(f"# {name} took {took:.0f} s\n", flush=True)
    page = _report.write(folder)
    print(f"{page} and {page.with_suffix('.html').name}")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
