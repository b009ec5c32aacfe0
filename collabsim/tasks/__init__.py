"""Tasks: items with golds, and the scorers that read and compare answers."""

from collabsim.item import Answer, Answers, Item, ItemView, Score, Scorer
from collabsim.tasks.answer_score import score_answer
from collabsim.tasks.building import make_item, scorer_for
from collabsim.tasks.catalogue import TaskRow, list_tasks
from collabsim.tasks.task import Task, load_task

__all__ = [
    "Answer",
    "Answers",
    "Item",
    "ItemView",
    "Score",
    "Scorer",
    "Task",
    "TaskRow",
    "list_tasks",
    "load_task",
    "make_item",
    "score_answer",
    "scorer_for",
]
