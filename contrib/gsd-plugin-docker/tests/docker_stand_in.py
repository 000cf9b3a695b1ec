"""Stands in for docker: checks the arguments of ``run``, writes them to a file, and runs the command here."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Do what docker does with *arguments*, without a container."""
    calls = Path(os.environ["HOME"], "calls.jsonl")
    with calls.open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    if arguments[0] != "run":
        print("0123456789ab" if arguments[0] == "ps" else "")
        return
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for flag in ("--rm", "--interactive", "--init"):
        parser.add_argument(flag, action="store_true", required=True)
    names = "pull name label network user workdir entrypoint userns"
    for name in (f"--{name}" for name in names.split()):
        parser.add_argument(name)
    for name in ("--cap-drop", "--security-opt", "--mount", "--env"):
        parser.add_argument(name, action="append", default=[])
    parser.add_argument("image")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments[1:])
    variables = {"PATH": os.environ["PATH"]}
    for each in given.env:
        name, has_value, value = each.partition("=")
        variables[name] = value if has_value else os.environ[name]
    os.chdir(given.workdir)
    os.execvpe(given.entrypoint, [given.entrypoint, *given.rest], variables)


if __name__ == "__main__":
    main(sys.argv[1:])
