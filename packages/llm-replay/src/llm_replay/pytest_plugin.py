"""Pytest plugin: a fixture for the scripted model."""
