"""The rules of `check_schema`, one module a subject."""
