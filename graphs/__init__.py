"""Ready-made collaboration protocols, one file each, as LangGraph graphs over seats.

They are found by name through the entry-point group `collabsim.protocols`, exactly like a user's own. Each module also
has a `graph`: the protocol over three simulated seats, for LangGraph's own tools (`langgraph.json`).
"""
