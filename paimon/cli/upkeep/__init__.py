"""Commands about what keeps states of a table, and what removes them: one module a noun."""
