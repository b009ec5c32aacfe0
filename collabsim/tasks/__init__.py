"""Tasks: items with their golds, out of data sets, generators and rows in memory."""

from collabsim.item import Answer, Answers, Item, ItemView, Score, Scorer
from collabsim.scorers import scorer_for
from collabsim.tasks.answer_score import score_answer
from collabsim.tasks.building import make_item
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
