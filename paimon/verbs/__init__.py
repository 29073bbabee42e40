"""One table of verbs: the maintenance of tables, as the terminal, ``CALL sys.…`` and `Table.call` offer it."""
