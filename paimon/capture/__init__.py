"""Change data capture: events of Debezium, Canal, Maxwell and plain JSON become rows with row kinds, and are written.

All modules but `write_events` are pure, like the domain. They are no part of the table format.
"""
