"""A local S3 server that stores its objects as files, and a proxy that can reject writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from pyarrow import fs

from tests.e2e.places import (
    LOOPBACK,
    bare_environment,
    free_port,
    started,
    unavailable,
    wait_until,
)

ACCESS, SECRET = "flinktriageaccess", "n0t-to-be-seen-anywhere"


@dataclass(frozen=True, slots=True)
class Store:
    """An S3 server. ``folder`` contains its buckets, with one file per object."""

    endpoint: str
    folder: Path

    @property
    def options(self) -> dict[str, str]:
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": "us-east-1",
            "fs.s3a.access.key": ACCESS,
            "fs.s3a.secret.key": SECRET,
        }

    def client(self) -> fs.S3FileSystem:
        return fs.S3FileSystem(
            access_key=ACCESS,
            secret_key=SECRET,
            endpoint_override=self.endpoint.removeprefix("http://"),
            scheme="http",
            region="us-east-1",
            allow_bucket_creation=True,
        )

    def configure(self, folder: Path, **more: str) -> Path:
        """Writes the Spark configuration for accessing the store, and returns its folder."""
        folder.mkdir()
        settings = self.options | {"fs.s3a.path.style.access": "true"} | more
        lines = [f"spark.hadoop.{name} {value}\n" for name, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines), encoding="utf-8")
        return folder

    def put(self, local: Path, key: str) -> None:
        """Uploads a file and sets an old modification time, as `copy_logs` does for local files."""
        with self.client().open_output_stream(key) as out:
            out.write(local.read_bytes())
        os.utime(self.folder / key, (1.7e9, 1.7e9))


def server_program() -> str:
    at = shutil.which("versitygw")
    if at is None and shutil.which("go"):
        home = subprocess.run(["go", "env", "GOPATH"], capture_output=True, text=True, check=True)
        at = shutil.which("versitygw", path=str(Path(home.stdout.strip()) / "bin"))
    if at is None:
        unavailable("versitygw: go install github.com/versity/versitygw/cmd/versitygw@v1.8.0")
    return str(at)


@contextmanager
def served(folder: Path) -> Iterator[Store]:
    """Runs a server with the buckets ``logs`` and ``tables`` until the block ends."""
    port = free_port()
    (folder / "buckets").mkdir()
    command = [server_program(), "--port", f"{LOOPBACK}:{port}", "posix", str(folder / "buckets")]
    env = bare_environment(ROOT_ACCESS_KEY=ACCESS, ROOT_SECRET_KEY=SECRET)
    with started(command, folder / "server.log", env, cwd=folder) as server:
        found = Store(f"http://{LOOPBACK}:{port}", folder / "buckets")

        def answers() -> bool:
            try:
                for bucket in ("logs", "tables"):
                    found.client().create_dir(bucket)
            except OSError:
                return False
            return True

        wait_until(answers, server, "an answer")
        yield found


class Gate(ThreadingHTTPServer):
    """A proxy for a store. Writes fail if ``refused`` contains an HTTP status and an error code."""

    daemon_threads = True

    def __init__(self, store: Store) -> None:
        super().__init__((LOOPBACK, 0), _Passing)
        self.behind = store.endpoint.removeprefix("http://")
        self.store = replace(store, endpoint=f"http://{LOOPBACK}:{self.server_port}")
        self.refused: tuple[int, str] | None = None


class _Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Gate

    def _pass(self) -> None:
        body = self._body()
        if self.server.refused is not None and self.command in ("PUT", "POST"):
            self._refuse(*self.server.refused)
            return
        connection = HTTPConnection(self.server.behind)
        connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        data = answer.read()
        self.send_response_only(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length"):
                self.send_header(name, value)
        # A response to HEAD states the length of the object and has no body.
        self.send_header("Content-Length", answer.getheader("Content-Length") or str(len(data)))
        self.end_headers()
        self.wfile.write(data)
        connection.close()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body, size = b"", 1
        while size:
            line = self.rfile.readline()
            size = int(line.partition(b";")[0], 16)
            body += line + (self.rfile.read(size + 2) if size else b"")
        # Trailer fields follow the last chunk.
        while line.strip():
            line = self.rfile.readline()
            body += line
        return body

    def _refuse(self, status: int, code: str) -> None:
        data = f"<Error><Code>{code}</Code><Message>{code}</Message></Error>".encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def gate_before(store: Store) -> Iterator[Gate]:
    """Runs a proxy for the store until the block ends."""
    with Gate(store) as gate:
        threading.Thread(target=gate.serve_forever, daemon=True).start()
        try:
            yield gate
        finally:
            gate.shutdown()
