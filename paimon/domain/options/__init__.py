"""Options of tables: what is known of each, their texts, and their values as typed attributes."""
