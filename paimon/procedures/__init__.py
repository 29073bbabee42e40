"""Procedures: the maintenance verbs of tables by the names that ``CALL sys.…`` takes."""
