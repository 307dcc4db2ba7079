"""Replay recorded model streams from session logs, in place of a live model."""
