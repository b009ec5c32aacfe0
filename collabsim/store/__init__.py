"""Storage of replies: the generation store, and the journal under it that run folders use too."""

from collabsim.store.journal import Journal
from collabsim.store.keys import request_key
from collabsim.store.sqlite import Schema
from collabsim.store.store import Fetched, GenerationStore, default_path

__all__ = ["Fetched", "GenerationStore", "Journal", "Schema", "default_path", "request_key"]
