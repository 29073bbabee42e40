"""Table schemas: declaration, changes, checks, JSON, and how files of older schemas are read."""
