"""A system: a protocol over a pool, run on one item under one coalition."""
