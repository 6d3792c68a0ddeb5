"""Run all benchmarks, or those named, and save their output in benches/results.

python benches/run.py [--quick] [NAME ...]
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
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(s.stem for s in scripts))
    parser.add_argument("--quick", action="store_true", help="a minute's worth of each")
    args = parser.parse_args()
    if unknown := set(args.names) - {script.stem for script in scripts}:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")

    (HERE / "results").mkdir(exist_ok=True)
    machine = f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"
    packages = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    failed = []
    for script in scripts:
        if args.names and script.stem not in args.names:
            continue
        heading = f"# {script.stem}\n{machine}; {packages}\n"
        print(heading, flush=True)
        command = [sys.executable, str(script), *(["--quick"] if args.quick else [])]
        with open(HERE / "results" / f"{script.stem}.txt", "w") as file:
            file.write(heading)
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
                for line in process.stdout or []:
                    print(line, end="", flush=True)
                    file.write(line)
        if process.returncode:
            failed.append(script.stem)
        print(flush=True)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
