"""For those who embed or adapt the library: what its own tests stand on.

`strategies` draws valid types, values, schemas, tables and histories; `contracts` are the suites that each adapter of a
port must pass; `memory_files`, `faulty_files` and `turns` are storage that forgets, fails and interleaves on purpose.
"""
