"""Foreign graphs: existing LangGraph applications as systems, and the chat model that lets them speak through seats."""
