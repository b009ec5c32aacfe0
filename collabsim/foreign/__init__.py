"""Foreign graphs: existing LangGraph applications as systems, and the chat model that sends their calls through seats."""
