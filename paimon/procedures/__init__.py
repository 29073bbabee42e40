"""Procedures: the maintenance methods of tables by the names that ``CALL sys.…`` takes."""
