"""What people see of tables, rows and plans: cards and texts of notebooks, aligned lines, JSON lines, small tables."""
