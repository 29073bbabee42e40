"""Column statistics: collected, reduced to a mode, and stored."""
