"""Run all benchmarks, or those named, and save their output in benches/results.

python benches/run.py [--quick] [NAME ...]

The papers' experiments are one of them: `papers` all, and each by its name.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ["boscage", "numpy", "scikit-learn", "river", "quantile-forest"]


def main() -> int:
    scripts = sorted([*HERE.glob("bench_*.py"), *HERE.glob("quality_*.py")])
    commands = {script.stem: [str(script)] for script in scripts}
    commands["papers"] = ["-m", "benches.papers"]
    experiments = sorted(path.stem for path in (HERE / "papers").glob("ch*_*.py"))
    # They run with `papers`, or if they are named.
    alone = {name: ["-m", "benches.papers", name] for name in experiments}
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join([*commands, *alone]))
    parser.add_argument("--quick", action="store_true", help="a minute's worth of each")
    args = parser.parse_args()
    if unknown := set(args.names) - {*commands, *alone}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")

    (HERE / "results").mkdir(exist_ok=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    failed = []
    for name in args.names or commands:
        heading = f"# {name}\n{machine}; {packages}\n"
        print(heading, flush=True)
        words = (commands | alone)[name]
        command = [sys.executable, *words, *(["--quick"] if args.quick else [])]
        with open(HERE / "results" / f"{name}.txt", "w") as file:
            file.write(heading)
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, cwd=HERE.parent
            ) as process:
                for line in process.stdout or []:
                    print(line, end="", flush=True)
                    file.write(line)
        if process.returncode:
            failed.append(name)
        print(flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
