"""Models made of several models of one architecture: the mean of their weights, or a base plus what each has learnt.

In: member models, a base, a `MergeRecipe`. Out: one model, of the same kind as they are. Left out on purpose: searching for
recipes (protocols fit them on dev), and merging models of different shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from collabsim.lazy import lazy_names

if TYPE_CHECKING:
    from collabsim.models.merging.merge_recipe import MergeRecipe
    from collabsim.models.merging.merged_chat_model import check_kinds, merged_model
    from collabsim.models.merging.merged_folder import check_alike, token_table

__all__ = ["MergeRecipe", "check_alike", "check_kinds", "merged_model", "token_table"]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "merge_recipe": ("MergeRecipe",),
            "merged_folder": ("check_alike", "token_table"),
            "merged_chat_model": ("check_kinds", "merged_model"),
        },
    )
