"""Evaluators of scalar SQL expressions, each bound to one SQL engine."""
