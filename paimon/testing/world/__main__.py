"""``python -m paimon.testing.world module:assemble --seeds 0:20000 --log here.log``: many histories, with a log.

Law: what the log holds is not run again, so that a stopped command goes on when it is given once more.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

from paimon.testing.world.campaign import campaign, points, seeds
from paimon.testing.world.plan import drawn
from paimon.testing.world.world import World, shrunk, told


def main(given: list[str] | None = None) -> int:
    """Run it; 1 where a history went wrong."""
    asked = _parser().parse_args(given)
    module, _, name = asked.assemble.partition(":")
    assemble = getattr(importlib.import_module(module), name or "assemble")
    warnings.simplefilter("ignore", RuntimeWarning)  # what fails after a commit is a warning: here it fails on purpose
    if asked.tell is not None:
        verdict = World(drawn(asked.tell), assemble).run()
        print(told(verdict if verdict.is_well else shrunk(verdict, assemble)))
        return not verdict.is_well
    if asked.log is None:
        _parser().error("--log is needed")
    first, _, last = asked.seeds.partition(":")
    plans = points(assemble) if asked.points else seeds(int(first), int(last))
    done = campaign(plans, assemble, asked.log, lambda line: print(line, flush=True), asked.seconds)
    return int(done.wrong > 0)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paimon.testing.world", description=__doc__)
    parser.add_argument("assemble", help="module:function that makes an engine of (files, clock, ids, random)")
    parser.add_argument("--seeds", default="0:300", help="first:last, without the last")
    parser.add_argument("--points", action="store_true", help="every fault point of the fixed workloads instead")
    parser.add_argument("--log", type=Path, help="which histories were judged; made where it is missing")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--tell", type=int, metavar="SEED", help="tell the history of one seed, smaller if wrong")
    return parser


if __name__ == "__main__":
    sys.exit(main())
