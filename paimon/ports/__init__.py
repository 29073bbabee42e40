"""The ports: protocols of what the library needs from its environment, and the values that they exchange."""
