"""Command line of the simulation: `python -m paimon.testing.simulation MODULE:FUNCTION --log FILE`.

Invariant: a history that is in the log is not run again, so the same command continues a stopped run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import warnings
from pathlib import Path

from paimon.testing.simulation.campaign import draw_plans, enumerate_fault_plans, run_campaign
from paimon.testing.simulation.simulation import Simulation, describe_result, shrink
from paimon.testing.simulation.simulation_plan import draw_plan

_DESCRIPTION = """\
Run simulated histories of one table and check the invariants of each.

A history interleaves writers, compaction, expiry, orphan file removal, tags, schema
changes and readers on one storage that fails. Its seed decides the order of all steps
and all faults, so that the same seed always gives the same history. After each history
the command checks that acknowledged commits are in the table exactly once, that refused
commits are not, that every snapshot and tag is readable, and that no file is missing or
left behind.

You supply the engine to test: a function of (files, clock, ids, random) that returns a
paimon.ports.engine.Engine which uses these four ports. It must be importable."""
_EPILOG = """\
examples:
  check the seeds 0 to 19999, and continue there if the command is started again
    python -m paimon.testing.simulation my.module:assemble --seeds 0:20000 --log seeds.log
  put each fault on each storage operation of six fixed workloads
    python -m paimon.testing.simulation my.module:assemble --fault-points --log points.log
  print each step of the history of seed 17; a history that fails is made smaller first
    python -m paimon.testing.simulation my.module:assemble --replay 17

log: one line per history, 'NAME passed' or 'NAME FAILED REASON'; the trace of a failed
history follows, indented by a tab. Remove a line to run its history again.

exit status: 0 if all histories passed, 1 if one failed."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status: 1 if a history violates an invariant."""
    parser = _build_parser()
    options = parser.parse_args(arguments)
    module, _, name = options.assemble.partition(":")
    assemble = getattr(importlib.import_module(module), name or "assemble")
    warnings.simplefilter("ignore", RuntimeWarning)  # maintenance after a commit fails on purpose here, and warns
    if options.replay is not None:
        result = Simulation(draw_plan(options.replay), assemble).run()
        print(describe_result(result if result.is_correct else shrink(result, assemble)))
        return not result.is_correct
    if options.log is None:
        parser.error("--log is required, unless --replay is given")
    first, _, stop = options.seeds.partition(":")
    plans = enumerate_fault_plans(assemble) if options.fault_points else draw_plans(int(first), int(stop))
    progress = run_campaign(plans, assemble, options.log, lambda line: print(line, flush=True), options.seconds)
    return int(progress.failed > 0)


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m paimon.testing.simulation",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "assemble", metavar="MODULE:FUNCTION", help="the function that returns the engine of one simulated process"
    )
    parser.add_argument("--log", metavar="FILE", type=Path, help="file for the results; created if it does not exist")
    parser.add_argument("--seeds", metavar="FIRST:STOP", default="0:300", help="seeds to run, STOP excluded (0:300)")
    parser.add_argument("--fault-points", action="store_true", help="run the fixed workloads instead of seeds")
    parser.add_argument(
        "--seconds", metavar="N", type=float, default=float("inf"), help="stop after this time (default: no limit)"
    )
    parser.add_argument("--replay", metavar="SEED", type=int, help="run one seed, print its trace, and write no log")
    return parser


if __name__ == "__main__":
    sys.exit(main())
