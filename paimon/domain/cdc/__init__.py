"""Change data capture: events of Debezium, Canal, Maxwell and plain JSON become rows with row kinds."""
