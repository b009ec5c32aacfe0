"""Models made of several models of one architecture: the mean of their weights, or a base plus what each has learnt.

In: member models, a base, a `Recipe`. Out: one model, of the same kind as they are. Left out on purpose: searching for
recipes (protocols fit them on dev), and merging models of different shapes.
"""

from __future__ import annotations

from collabsim.models.merging.merge_recipe import Recipe
from collabsim.models.merging.merged_folder import check_alike, token_table
from collabsim.models.merging.merged_model import check_kinds, merged_model

__all__ = ["Recipe", "check_alike", "check_kinds", "merged_model", "token_table"]
