"""Scorers: how replies of each kind are read and compared with their golds.

In: a reply and an item. Out: a `Score`. One scorer per item serves votes, rewards and reports; `building.py` chooses it.
"""
