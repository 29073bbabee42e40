"""The public verbs of a table's upkeep: what keeps its states, and what checks, compacts and cleans it."""
