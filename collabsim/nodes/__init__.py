"""What the nodes of a graph are made of: asking a seat, state, voting, quoting."""
