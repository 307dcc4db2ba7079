"""Pytest plugin: collects scenarios from suite.toml."""
