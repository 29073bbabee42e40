"""Rows as text: values of Arrow columns, lines for pipes, and tables for a terminal."""
