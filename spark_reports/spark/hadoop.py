"""Places on file systems that Hadoop knows (`s3a://`, `hdfs://`, `abfss://`), by the Java process of a Spark session.

`HadoopPlace` is a `quorate.spark_reports.model.places.Place`, and `HadoopFiles` are `Files`. All bytes pass through the gateway of Java,
which is quick enough for a day of probes. What may have many rows, Spark reads and writes itself, by the same URI.
"""

import io
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from fnmatch import fnmatchcase
from functools import total_ordering
from pathlib import PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow import fs as arrow

from ..input.files import beside
from ..model.errors import ReportError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNK_BYTES: Final = 1 << 20
"""So much passes the gateway at once."""

WHOLE_AT_CLOSE: Final = "fs.capability.outputstream.abortable"
"""The capability of object stores by which a file is there, whole, once it is closed, and not before."""

NOT_FOUND: Final = "java.io.FileNotFoundException"


@contextmanager
def _java_errors() -> Iterator[None]:
    """Raise what Java does as OSError, in its own words."""
    try:
        yield
    except Py4JJavaError as error:
        raised = error.java_exception
        name = str(raised.getClass().getName())
        said = (str(raised.getMessage() or "").splitlines() or [""])[0][:300]
        kind = FileNotFoundError if name == NOT_FOUND else OSError
        raise kind(f"{name.rpartition('.')[2]}: {said}") from error


class HadoopStat(NamedTuple):
    """As `Stat`; Hadoop tells milliseconds."""

    st_size: int
    st_mtime_ns: int


class HadoopFiles:
    """The file systems of Hadoop, with the settings of a session (`spark.hadoop.…`)."""

    def __init__(self, spark: "SparkSession") -> None:
        self._spark: Final = spark
        self._conf: Final = spark.sparkContext._jsc.hadoopConfiguration()
        self._hadoop: Final = spark._jvm.org.apache.hadoop  # type: ignore[union-attr]

    def place(self, uri: str) -> "HadoopPlace":
        """Find the file system of a URI.

        Raises:
            ReportError: Spark has none for its scheme, or it cannot be used with these settings.
        """
        try:
            with _java_errors():
                system = self.path(uri).getFileSystem(self._conf)
        except OSError as error:
            version = self._hadoop.util.VersionInfo.getVersion()
            raise ReportError(
                f"{uri} cannot be used ({error}); where Spark lacks the package of its file system, give that, for s3a with --conf "
                f"spark.jars.packages=org.apache.hadoop:hadoop-aws:{version}, and its settings as --conf spark.hadoop.KEY=VALUE"
            ) from error
        return HadoopPlace(self, system, *_parted(uri))

    def path(self, uri: str) -> Any:
        """A URI as Hadoop has it."""
        return self._hadoop.fs.Path(uri)

    def put(self, place: "HadoopPlace", content: bytes) -> None:
        """As `Files`: an object in one put; elsewhere beside its place, and renamed over the former one.

        HDFS renames at once. Where a file system cannot, the former file is taken away first.
        """
        if place.is_whole_at_close():
            place.write(content)
            return
        new = beside(place)
        new.write(content)
        with _java_errors():
            options = getattr(self._hadoop.fs, "Options$Rename")
            over = self._spark.sparkContext._gateway.new_array(options, 1)  # type: ignore[union-attr]
            over[0] = options.OVERWRITE
            target = self.path(str(place))
            context = self._hadoop.fs.FileContext.getFileContext(target.toUri(), self._conf)
            context.rename(self.path(str(new)), target, over)

    def locked(self, _place: "HadoopPlace", *, is_shared: bool) -> AbstractContextManager[None]:
        """Nothing: no lock of Hadoop would end with the process that has it."""
        return nullcontext()

    def remove(self, place: "HadoopPlace") -> None:
        """As `Files`."""
        place.delete(recursive=True)

    def dataset(self, place: "HadoopPlace") -> tuple[Any, Any]:
        """As `Files`."""
        return arrow.PyFileSystem(arrow.FSSpecHandler(_ForArrow(place))), place.path


@total_ordering
class HadoopPlace:
    """One place, with the methods of `pathlib.Path` that `Place` names. Errors of Java are OSErrors."""

    def __init__(
        self, files: HadoopFiles, system: Any, root: str, path: str, *, is_file: bool = False
    ) -> None:
        """Without a look at it; `root` is scheme and authority, and `is_file` is set where a listing has said so."""
        self.files: Final = files
        self.path: Final = path.rstrip("/") or "/"
        self._system: Final = system
        self._root: Final = root
        self._is_file: Final = is_file

    def __str__(self) -> str:
        return self._root + self.path

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HadoopPlace) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __lt__(self, other: "HadoopPlace") -> bool:
        return self._pure.parts < other._pure.parts

    def __truediv__(self, name: str) -> "HadoopPlace":
        return self.at(str(self._pure / name))

    def at(self, path: str, *, is_file: bool = False) -> "HadoopPlace":
        """The place of a path on the same file system."""
        return HadoopPlace(self.files, self._system, self._root, path, is_file=is_file)

    @property
    def _pure(self) -> PurePosixPath:
        return PurePosixPath(self.path)

    @property
    def _java(self) -> Any:
        return self.files.path(str(self))

    @property
    def name(self) -> str:
        """As in `Path`, and so the others."""
        return self._pure.name

    @property
    def stem(self) -> str:
        return self._pure.stem

    @property
    def suffix(self) -> str:
        return self._pure.suffix

    @property
    def parent(self) -> "HadoopPlace":
        return self.at(str(self._pure.parent))

    def with_name(self, name: str) -> "HadoopPlace":
        return self.at(str(self._pure.with_name(name)))

    def relative_to(self, other: "HadoopPlace") -> PurePosixPath:
        return self._pure.relative_to(other._pure)

    def absolute(self) -> "HadoopPlace":
        return self

    def resolve(self) -> "HadoopPlace":
        return self

    def _status(self) -> Any:
        with _java_errors():
            return self._system.getFileStatus(self._java)

    def exists(self) -> bool:
        try:
            self._status()
        except FileNotFoundError:
            return False
        return True

    def is_file(self) -> bool:
        try:
            return self._is_file or bool(self._status().isFile())
        except FileNotFoundError:
            return False

    def is_dir(self) -> bool:
        try:
            return bool(self._status().isDirectory())
        except FileNotFoundError:
            return False

    def stat(self) -> HadoopStat:
        found = self._status()
        return HadoopStat(found.getLen(), found.getModificationTime() * 1_000_000)

    def iterdir(self) -> Iterator["HadoopPlace"]:
        with _java_errors():
            found = self._system.listStatus(self._java)
        for each in found:
            yield self.at(each.getPath().toUri().getPath(), is_file=each.isFile())

    def glob(self, pattern: str) -> Iterator["HadoopPlace"]:
        """Those of one level; of several, as in `day=*/*`, files alone, which an object store lists all at once."""
        if "/" in pattern:
            levels = pattern.count("/") + 1
            below = ((each, each.relative_to(self)) for each in self.rglob("*"))
            yield from (each for each, path in below if len(path.parts) == levels and path.match(pattern))
            return
        try:
            yield from (each for each in self.iterdir() if fnmatchcase(each.name, pattern))
        except FileNotFoundError:
            return

    def rglob(self, pattern: str) -> Iterator["HadoopPlace"]:
        """Files alone, on any level."""
        try:
            with _java_errors():
                found = self._system.listFiles(self._java, True)
                while found.hasNext():
                    path = found.next().getPath()
                    if fnmatchcase(path.getName(), pattern):
                        yield self.at(path.toUri().getPath(), is_file=True)
        except FileNotFoundError:
            return

    def open(
        self,
        mode: str = "r",
        *,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Whole files: to read, or to write anew."""
        with _java_errors():
            if mode == "wb":
                return io.BufferedWriter(_Written(self._system.create(self._java, True)), CHUNK_BYTES)
            size = self._system.getFileStatus(self._java).getLen()
            read = io.BufferedReader(_Read(self._system.open(self._java), size), CHUNK_BYTES)
        return read if "b" in mode else io.TextIOWrapper(read, encoding, errors, newline)

    def read_bytes(self) -> bytes:
        with self.open("rb") as file:
            return bytes(file.read())

    def read_text(self, encoding: str | None = None) -> str:
        with self.open("r", encoding=encoding) as file:
            return str(file.read())

    def is_whole_at_close(self) -> bool:
        """Whether a file that is written there is seen once it is closed, and not before."""
        with _java_errors():
            return bool(self._system.hasPathCapability(self._java, WHOLE_AT_CLOSE))

    def write(self, content: bytes) -> None:
        """Write a file. If that fails it is never closed, so that an object store never has it."""
        with _java_errors():
            stream = self._system.create(self._java, True)
            stream.write(content)
            stream.close()

    def mkdir(self, *, parents: bool = False, exist_ok: bool = False) -> None:
        """With its parents, and where it is there already."""
        with _java_errors():
            self._system.mkdirs(self._java)

    def rename(self, target: "HadoopPlace") -> "HadoopPlace":
        with _java_errors():
            if not self._system.rename(self._java, target._java):
                raise OSError(f"{self} cannot be renamed to {target}")
        return target

    def delete(self, *, recursive: bool) -> bool:
        """Take away what is there; whether anything was."""
        with _java_errors():
            return bool(self._system.delete(self._java, recursive))

    def unlink(self, missing_ok: bool = False) -> None:
        if not self.delete(recursive=False) and not missing_ok:
            raise FileNotFoundError(f"{self} is not there")

    def rmdir(self) -> None:
        self.unlink()


def _parted(uri: str) -> tuple[str, str]:
    """The scheme and authority of a URI, and the path there.

    >>> _parted("s3a://bucket/a b/c")
    ('s3a://bucket', '/a b/c')
    """
    scheme, _, rest = uri.partition("://")
    authority, slash, path = rest.partition("/")
    return f"{scheme}://{authority}", slash + path


class _Read(io.RawIOBase):
    """The bytes of a file; it is known how many there are."""

    def __init__(self, stream: Any, size: int) -> None:
        self._stream = stream
        self._size = size
        self._next = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._next, io.SEEK_END: self._size}[whence]
        self._next = start + offset
        return self._next

    def tell(self) -> int:
        return self._next

    def readinto(self, buffer: Any) -> int:
        number = min(len(buffer), CHUNK_BYTES, self._size - self._next)
        if number <= 0:
            return 0
        with _java_errors():
            if self._stream.getPos() != self._next:
                self._stream.seek(self._next)
            content = self._stream.readNBytes(number)
        buffer[: len(content)] = content
        self._next += len(content)
        return len(content)

    def readall(self) -> bytes:
        parts = []
        while part := self.read(CHUNK_BYTES):
            parts.append(part)
        return b"".join(parts)

    def close(self) -> None:
        if not self.closed:
            with _java_errors():
                self._stream.close()
        super().close()


class _Written(io.RawIOBase):
    """A file that is written from its beginning."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        with _java_errors():
            self._stream.write(bytes(content))
        return len(content)

    def close(self) -> None:
        if not self.closed:
            with _java_errors():
                self._stream.close()
        super().close()


class _ForArrow:
    """What `FSSpecHandler` of Arrow asks of a file system, to read a folder of Parquet; paths are those within it."""

    protocol = "hadoop"

    def __init__(self, folder: HadoopPlace) -> None:
        self._at: Final = folder.at

    def info(self, path: str) -> dict[str, Any]:
        place = self._at(path)
        found = place.stat()
        kind = "file" if place.is_file() else "directory"
        return {"name": path, "type": kind, "size": found.st_size, "mtime": found.st_mtime_ns / 1e9}

    def isdir(self, path: str) -> bool:
        return self._at(path).is_dir()

    def isfile(self, path: str) -> bool:
        return self._at(path).is_file()

    def find(self, path: str, **_: Any) -> dict[str, dict[str, Any]]:
        """All files below a folder."""
        return {
            each.path: {"name": each.path, "type": "file", "size": None} for each in self._at(path).rglob("*")
        }

    def open(self, path: str, mode: str) -> IO[Any]:
        return self._at(path).open(mode)
