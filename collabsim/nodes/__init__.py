"""Building blocks for the nodes of a graph: asking a seat, state, voting, quoting."""
