"""docs/reference/library.md, made from the docstrings: `python -m tests.docs.library_page > docs/reference/library.md`."""

from typing import Final

from quorate.adts import library
from tests.docs.sdk_page import definition, described, entry

INTRODUCTION: Final = """# Bundled types

Each is a class like those that you [write yourself](../how-to/own-types.md). To serve one, name it in the cluster file, under any
name but those of the [catalogue](types.md):

<!-- run: toml -->
```toml
[types]
visits = "quorate.adts.library:Counter"
leader = "quorate.adts.library:Lock"
```

Then it is called as your own types are: in Python `client.object(Counter, "front", type_name="visits").add(1)`, in the shell
`quorate call visits/front value`, over HTTP `POST /v1/objects/visits/front/add`. A call of a blind operation is
[stored without a look](../how-to/own-types.md#store-without-a-look); every other change is one decision of a quorum. A state has at
most 256 KiB, and every decision carries all of it: make many small objects.

To set something that a class leaves open, or to add an operation, derive one of your own, and serve that:

<!-- run: file coach.py -->
```python
from quorate.adts.library import BoundedCounter


class Seats(BoundedCounter):
    limit = 40
```

<!-- run: sh -->
```sh
quorate types check coach.py:Seats
```

"""
MODULES: Final = ("numbers", "collections", "lock")


def rendered() -> str:
    """The whole page."""
    page = INTRODUCTION
    for module in MODULES:
        path = f"adts/library/{module}.py"
        names = [name for name in library.__all__ if getattr(library, name).__module__.endswith(f".{module}")]
        page += "".join(entry(path, name).replace("### ", "## ", 1) for name in names if not is_outcome(name))
    page += "## Outcomes\n\nExceptions of `quorate.adts.library`, by which operations end that changed nothing.\n\n"
    page += "| outcome | meaning |\n| --- | --- |\n"
    for module in MODULES:
        for name in library.__all__:
            found = getattr(library, name)
            if is_outcome(name) and found.__module__.endswith(f".{module}"):
                page += f"| `{name}` | {described(definition(f'adts/library/{module}.py', name))} |\n"
    return page


def is_outcome(name: str) -> bool:
    """Whether it is an exception by which operations end."""
    return issubclass(getattr(library, name), Exception)


if __name__ == "__main__":
    print(rendered(), end="")
