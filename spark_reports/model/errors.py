"""What can go wrong while a report is made.

    ReportError          the input folder, or what is in it, cannot give a report
    └── SparkMissing     Spark is needed and not there
        └── JavaMissing  Spark needs a Java runtime and none was found

Each message is a sentence that names the place and the remedy. Single bad rows are no error: they are counted,
kept aside and listed in the report.
"""


class ReportError(Exception):
    """No report can be made; the message says where the fault lies and what to do."""


class SparkMissing(ReportError):
    """Spark is needed and cannot be had here; the message says how to get it."""


class JavaMissing(SparkMissing):
    """No Java runtime of version 17 or later was found; the message says how to get one."""
