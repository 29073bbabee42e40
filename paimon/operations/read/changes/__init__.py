"""Read the changes between snapshots: changelogs, deltas and differences of two states."""
