"""The names that a measured run is written in, and the reasons for which a row is kept aside.

`docs/reference/measurements.md` is the contract; this module owns its words, so that the Spark jobs and the plain-Python reference
cannot drift apart. `run_document` reads `run.json`, `sources` finds the files.
"""

from typing import Final

OPERATION_FIELDS: Final = (
    "object",
    "adt",
    "operation",
    "choice",
    "front_end",
    "start_s",
    "latency_s",
    "outcome",
    "answered",
)
"""The fields every operation must have; `event_class` comes on top and is null unless the outcome is ok."""

OUTCOMES: Final = ("ok", "unavailable", "unknown")
REPLICA_COLUMNS: Final = ("replica", "start_s", "end_s", "up")
LINK_COLUMNS: Final = ("front_end", "replica", "start_s", "end_s", "up")
PROBE_FIELDS: Final = ("replica", "time_s", "up")
"""The fields every probe must have; `latency_s` may be null."""

INTERVALS: Final = "intervals"
LINKS: Final = "links"
OPERATIONS: Final = "operations"
PROBES: Final = "probes"
KINDS: Final = (OPERATIONS, INTERVALS, LINKS, PROBES)
"""The kinds of rows."""

NUMBER_PATTERN: Final = r"^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]{1,3})?$"
"""A number in a CSV file; narrower than either Java's or Python's parser, so that both read the same."""

TIME_S_MAX: Final = 1e11
"""Times beyond this (the year 5138) are refused: most likely milliseconds, and microseconds stay exact below it."""

REPLICAS_MAX: Final = 25
"""As many as a cluster may have. More are refused: a probe has room for the numbers of 32 of them."""

LAG_S: Final = 1.0
"""How near to a change of the deciding state, in seconds, an attempt counts as met by it, where nothing else is said."""

# Reasons, in the order in which they are tested: a row is counted under the first that holds.
MALFORMED_JSON: Final = "not one JSON object with fields of the right type"
MISSING_FIELD: Final = "missing field: "
UNKNOWN_OUTCOME: Final = "unknown outcome"
UNKNOWN_CHOICE: Final = "quorum choice not in run.json"
OTHER_ADT: Final = "ADT differs from that of the quorum choice"
UNKNOWN_OBJECT: Final = "object not in run.json"
OTHER_CHOICE: Final = "quorum choice differs from that of the object in run.json"
UNKNOWN_FRONT_END: Final = "front end not in run.json"
UNKNOWN_OPERATION: Final = "operation not in the quorum choice"
CLASS_WITHOUT_OK: Final = "event class given though the outcome is not ok"
CLASS_MISSING: Final = "no event class though the outcome is ok"
UNKNOWN_CLASS: Final = "event class is not one of the operation in the quorum choice"
BAD_START: Final = "start time is not a plausible number of seconds"
BAD_LATENCY: Final = "negative or implausible latency"
UNKNOWN_ANSWER: Final = "answered by an unknown replica"
OUTSIDE_WINDOW: Final = "began outside the window of run.json"
DUPLICATE: Final = "same front end, object, operation and start as another row, which is kept"

MALFORMED_CSV: Final = "not as many fields as the header, or a field that is not a number"
UNKNOWN_REPLICA: Final = "unknown replica"
BAD_TIME: Final = "time is not a plausible number of seconds"
BAD_UP: Final = "up is neither 0 nor 1"
ENDS_BEFORE_START: Final = "interval ends before it starts"
SAME_INTERVAL: Final = "says the same as another interval, which is kept"
CONTRADICTS: Final = (
    "contradicts another interval of the same replica or link; the time of which both speak is unknown"
)
