"""Structured Streaming: tables as sources and sinks, each batch exactly once."""
