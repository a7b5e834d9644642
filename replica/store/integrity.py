"""Whether an opened database is whole: its structure, its contents, and nothing of its end lost.

Owns what is looked at before a replica votes. Reads all of it once; a replica that votes from a damaged store would
serve less, or something else, than it has acknowledged.
"""

from . import statements
from .commit_counter import Mark
from .configuration import chosen_in, noted_in
from .database import Database
from .records import damaged, held_of, row_of, state_of, without_sum


def damage_in(opened: Database) -> str | None:
    """What is wrong with the structure of the database; None when it is whole or empty.

    Raises StorageFailed when its contents are damaged, or cannot be read.
    """
    problem = opened.check()
    if problem is not None or opened.is_empty():
        return problem
    for number, name, blob in opened.each(statements.ALL_OBJECTS):
        state_of(number, name, blob)
    for number, *columns in opened.each(statements.ALL_ROWS):
        row_of(number, columns)
    for columns in opened.each(statements.ALL_EVENTS):
        without_sum(f"the event at {columns[1]}", columns)
    for columns in opened.each(statements.ALL_RESERVATIONS):
        held_of(columns)
    for columns in opened.each(statements.GET_WITNESSES):
        without_sum("what it saw of other stores", columns)
    noted_in(opened)
    chosen_in(opened)
    return _lost_end(opened)


def _lost_end(opened: Database) -> str | None:
    counters = opened.one(statements.GET_COUNTERS)
    if counters is None:
        return "its counters are gone"
    *_, commits = without_sum("its counters", counters)
    mark = Mark(opened.path)
    answered = mark.read()
    if answered is None:
        raise damaged(mark.path.name)
    if answered > commits:
        return f"its last {answered - commits} transactions are gone, which the replica had answered for"
    return None
