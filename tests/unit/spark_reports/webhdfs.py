"""A server that speaks WebHDFS of a folder, as Hadoop's own client asks: what Spark needs to list, read, write and rename files.

It answers as a name node does, and as the data node that it sends readers and writers to. What it is told to refuse, it refuses
with the error of HDFS, and does nothing: to a writer it looks as if it were cut off there.
"""

import json
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import punctuation
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs, quote, unquote_to_bytes, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PREFIX: Final = "/webhdfs/v1"
WRITES: Final = frozenset({"CREATE", "MKDIRS", "RENAME", "DELETE"})


class WebHdfs:
    """The server, and what it was asked for: the name of each operation and its path, but for the half that data nodes answer."""

    def __init__(self, root: Path) -> None:
        self.root: Final = root
        self.asked: list[tuple[str, str]] = []
        self.refuses: Callable[[str, str], bool] = lambda _name, _path: False
        self._server: Final = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"files": self})
        )
        self._server.daemon_threads = True

    @property
    def uri(self) -> str:
        """Its root, as Hadoop has it."""
        return f"webhdfs://127.0.0.1:{self._server.server_port}"

    @contextmanager
    def running(self) -> Iterator["WebHdfs"]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()
            thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    files: WebHdfs
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._do()

    def do_PUT(self) -> None:
        self._do()

    def do_DELETE(self) -> None:
        self._do()

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _do(self) -> None:
        parts = urlsplit(self.path)
        self.asks = {name.lower(): values[0] for name, values in parse_qs(parts.query).items()}
        # Hadoop leaves letters beyond ASCII as they are, and http.server takes bytes for Latin-1.
        path = unquote_to_bytes(parts.path.encode("latin-1")).decode().removeprefix(PREFIX)
        name = self.asks["op"]
        self.file = self.files.root / path.lstrip("/")
        content = self._content()
        if "datanode" not in self.asks:
            self.files.asked.append((name, path))
            if self.files.refuses(name, path):
                self._refuse(403, "org.apache.hadoop.security.AccessControlException", "refused")
                return
        try:
            getattr(self, f"_{name.lower()}")(content)
        except OSError as error:
            self._refuse(404, "java.io.FileNotFoundException", str(error))

    def _content(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(self, status: int, body: bytes, kind: str = "application/json", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _tell(self, found: Any) -> None:
        self._answer(200, json.dumps(found).encode())

    def _refuse(self, status: int, java: str, message: str) -> None:
        error = {"exception": java.rpartition(".")[2], "javaClassName": java, "message": message}
        self._answer(status, json.dumps({"RemoteException": error}).encode())

    def _to_data_node(self) -> bool:
        """Send the client on, as a name node does; whether it is there already."""
        if "datanode" in self.asks:
            return True
        asked = quote(self.path.encode("latin-1"), safe=punctuation)
        self._answer(307, b"", Location=f"http://{self.headers['Host']}{asked}&datanode=1")
        return False

    def _getfilestatus(self, _: bytes) -> None:
        self._tell({"FileStatus": _status(self.file, "")})

    def _getfilelinkstatus(self, _: bytes) -> None:
        self._tell({"FileStatus": _status(self.file, "")})

    def _gethomedirectory(self, _: bytes) -> None:
        self._tell({"Path": "/user"})

    def _liststatus(self, _: bytes) -> None:
        found = sorted(self.file.iterdir()) if self.file.is_dir() else [self.file]
        listed = [_status(each, each.name if self.file.is_dir() else "") for each in found]
        self._tell({"FileStatuses": {"FileStatus": listed}})

    def _getfileblocklocations(self, _: bytes) -> None:
        self._tell({"BlockLocations": {"BlockLocation": []}})

    def _open(self, _: bytes) -> None:
        if self._to_data_node():
            start = int(self.asks.get("offset", 0))
            content = self.file.read_bytes()[start:]
            length = int(self.asks.get("length", len(content)))
            self._answer(200, content[:length], "application/octet-stream")

    def _create(self, content: bytes) -> None:
        if self._to_data_node():
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self.file.write_bytes(content)
            self._answer(201, b"")

    def _mkdirs(self, _: bytes) -> None:
        self.file.mkdir(parents=True, exist_ok=True)
        self._tell({"boolean": True})

    def _rename(self, _: bytes) -> None:
        target = self.files.root / self.asks["destination"].lstrip("/")
        over = "OVERWRITE" in self.asks.get("renameoptions", "")
        if target.is_dir():
            target /= self.file.name
        done = self.file.exists() and (over or not target.exists())
        if done:
            self.file.replace(target)
        self._tell({"boolean": done})

    def _delete(self, _: bytes) -> None:
        is_there = self.file.exists()
        if self.file.is_dir() and self.asks.get("recursive") == "true":
            shutil.rmtree(self.file)
        elif self.file.is_dir():
            self.file.rmdir()
        elif is_there:
            self.file.unlink()
        self._tell({"boolean": is_there})


def _status(file: Path, suffix: str) -> dict[str, Any]:
    found = file.stat()
    return {
        "accessTime": 0,
        "blockSize": 1 << 27,
        "group": "users",
        "length": 0 if file.is_dir() else found.st_size,
        "modificationTime": found.st_mtime_ns // 1_000_000,
        "owner": "quorate",
        "pathSuffix": suffix,
        "permission": "755",
        "replication": 1,
        "type": "DIRECTORY" if file.is_dir() else "FILE",
    }


MEDIA_TYPES: Final = """
package quorate;
import org.apache.hadoop.shaded.javax.ws.rs.core.*;
import org.apache.hadoop.shaded.javax.ws.rs.ext.RuntimeDelegate;
public class MediaTypes extends RuntimeDelegate implements RuntimeDelegate.HeaderDelegate {
  public Object fromString(String text) {
    String[] parts = text.split(";")[0].split("/");
    return new MediaType(parts[0], parts[1]);
  }
  public String toString(Object type) { return ((MediaType) type).getType() + "/" + ((MediaType) type).getSubtype(); }
  public RuntimeDelegate.HeaderDelegate createHeaderDelegate(Class type) { return this; }
  public Object createEndpoint(Application application, Class type) { return null; }
  public Response.ResponseBuilder createResponseBuilder() { return null; }
  public UriBuilder createUriBuilder() { return null; }
  public Variant.VariantListBuilder createVariantListBuilder() { return null; }
  public Link.Builder createLinkBuilder() { return null; }
}
"""
"""Hadoop's client asks what a JSON answer is by a class that the jars of Spark lack; hdfs:// does not need it."""

BUCKET: Final = """
package quorate;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.web.WebHdfsFileSystem;
public class Bucket extends WebHdfsFileSystem {
  public String getScheme() { return "bucket"; }
  public boolean hasPathCapability(Path path, String name) { return name.equals("fs.capability.outputstream.abortable"); }
}
"""
"""The same server under `bucket://`, with the capability that an object store has: a file is there when it is closed."""


def install(spark: "SparkSession") -> None:
    """Make a session know both schemes. Janino, which is Spark's own, compiles what that takes."""
    jvm = spark._jvm
    assert jvm is not None
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(MEDIA_TYPES)
    made = (
        compiler.getClassLoader()
        .loadClass("quorate.MediaTypes")
        .getDeclaredConstructors()[0]
        .newInstance(None)
    )
    jvm.org.apache.hadoop.shaded.javax.ws.rs.ext.RuntimeDelegate.setInstance(made)
    compiler = jvm.org.codehaus.janino.SimpleCompiler()
    compiler.cook(BUCKET)
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.setClassLoader(compiler.getClassLoader())
    conf.set("fs.bucket.impl", "quorate.Bucket")
