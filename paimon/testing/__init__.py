"""Test kit for this library, for adapters, and for programs that embed it; it needs Hypothesis and no test runner.

`strategies` draws valid types, values, schemas, tables and histories. `contracts` contains the tests that each adapter
of a port must pass. `memory_files`, `faulty_files` and `interleaving` supply storage in memory, faults, and an order of
steps. `simulation` and `stress_test` run many writers on one table.
"""
