"""Record an ACP agent once, replay it for ever."""
