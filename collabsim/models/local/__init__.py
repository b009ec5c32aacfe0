"""Models that run in this process: messages to token ids, and an engine that samples."""
