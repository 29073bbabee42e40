"""The command line: one module a noun; all work is done by the library's public face."""
