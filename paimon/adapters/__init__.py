"""Driven adapters: each implements a port with at most one third-party package."""
