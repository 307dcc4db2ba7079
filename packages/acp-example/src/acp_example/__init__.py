"""A coding agent that speaks the Agent Client Protocol."""
