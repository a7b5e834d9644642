"""How a run's document says by which quorums an object was kept."""

from msgspec.structs import replace

from quorate.api_specs.cluster import ChoiceRule
from quorate.measurement.run.run_folder import choice_as_json
from tests.unit.client_sdk.scripted import document_of


def test_a_queue_with_outboxes_is_told_as_an_eventual_queue_by_numbers_or_by_systems() -> None:
    numbers = ChoiceRule("queue/a", {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, outbox=True)
    systems = ChoiceRule(
        "queue/b", initials={"Deq": "r1*r2"}, finals={"Enq": "r1 + r2", "Deq": "r1"}, outbox=True
    )
    document = document_of("r1", "r2", "r3", choices=(numbers, systems))
    assert choice_as_json(document, "queue/a") == {
        "adt": "eventual-queue",
        "ordering": "clock",
        "classes": {"Enq/Ok": [0, 1], "Deq/Ok": [2, 2], "Deq/Empty": [2, 0]},
    }
    told = choice_as_json(document, "queue/b")
    assert told["adt"] == "eventual-queue"
    assert told["finals"]["Enq/Ok"] == "r1 + r2 + r3"
    assert told["initials"].keys() == {"Enq", "Deq"}
    assert told["finals"].keys() == {"Enq/Ok", "Deq/Ok", "Deq/Empty"}
    assert choice_as_json(document, "queue/c")["adt"] == "queue"


def test_with_exact_empty_it_is_a_semiqueue_whose_empty_answers_ask_every_replica() -> None:
    numbers = ChoiceRule("queue/a", {"Enq/Ok": (0, 2), "Deq/Ok": (2, 2)}, outbox=True, exact_empty=True)
    systems = replace(
        numbers,
        objects="queue/b",
        classes={},
        initials={"Deq": "r1*r2"},
        finals={"Enq": "r1 + r2", "Deq": "r1"},
    )
    document = document_of("r1", "r2", "r3", choices=(numbers, systems))
    assert choice_as_json(document, "queue/a") == {
        "adt": "semiqueue",
        "ordering": "clock",
        "classes": {"Enq/Ok": [0, 1], "Deq/Ok": [2, 2], "Deq/Empty": [3, 0]},
    }
    told = choice_as_json(document, "queue/b")
    assert told["adt"] == "semiqueue"
    assert told["initials"].keys() == {"Enq", "Deq", "Deq/Empty"}
    assert told["initials"]["Deq"] == "(r1*r2)"
    assert told["initials"]["Deq/Empty"] == "r1*r2*r3"
