"""What the HTTP servers of the tests share: a port of the system's choice, a log of all requests, and
faults that a test switches on. A server says in `answer(request)` what it would answer.

    server.fault("cut", method="GET", key="t.csv", after=1000)   # 1000 bytes of the body, then a reset
    server.fault("truncate", after=10)                           # the same with an orderly end
    server.fault("swallow", method="PUT", after=100)             # reset after 100 bytes of its body
    server.fault("lose", method="POST")                          # does it, and resets without an answer
    server.fault("status", status=503, headers={"Retry-After": "0"}, times=2)
    server.fault("length", add=7)                                # Content-Length is 7 too large
    server.fault("hold")                                         # answers after server.release()
    server.fault("do", action=lambda: ...)                       # calls it before the answer is made

Each concerns requests of the method whose path contains `key` and whose query has all of `query`; it
is used `times` times (1), after `skip` requests that it could have concerned (0). `server.log` has
the requests in the order in which they came, with the status of the answer.
"""

import dataclasses
import http.server
import socket
import struct
import threading
import urllib.parse


@dataclasses.dataclass
class Request:
    method: str
    target: str  # as it was sent: path and query
    headers: dict  # names in small letters
    body: bytes = b""
    status: int = 0  # of the answer; 0: the connection was reset without one
    sent: int = 0  # bytes of the answer's body

    @property
    def path(self):
        return urllib.parse.unquote(self.target.partition("?")[0])

    @property
    def query(self):
        """Names and values, decoded; `?uploads` has the value ""."""
        return dict(urllib.parse.parse_qsl(self.target.partition("?")[2], keep_blank_values=True))


@dataclasses.dataclass
class Answer:
    status: int
    body: bytes = b""
    headers: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Fault:
    kind: str
    method: str = ""
    key: str = ""
    query: tuple = ()
    skip: int = 0
    times: int = 1
    after: int = 0
    status: int = 500
    headers: dict = dataclasses.field(default_factory=dict)
    body: bytes = b""
    add: int = 0
    action: object = None
    seen: int = 0

    def concerns(self, request):
        """Counts the request, too."""
        if (self.method and request.method != self.method or self.key not in request.path
                or not set(self.query) <= set(request.query)):
            return False
        self.seen += 1
        return self.skip < self.seen <= self.skip + self.times


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def reset(self):
        """Ends the connection with a reset, so that the client gets an error and not an end."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def read_body(self, length):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(length)
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def send(self, request, answer, fault):
        length = len(answer.body) + (fault.add if fault and fault.kind == "length" else 0)
        (self.send_response_only if "Date" in answer.headers else self.send_response)(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        told = {"Content-Length", "Transfer-Encoding"} & set(answer.headers)
        if not told and answer.status not in (204, 304):
            self.send_header("Content-Length", str(length))
        self.end_headers()
        body = b"" if request.method == "HEAD" else answer.body
        if fault and fault.kind in ("cut", "truncate"):
            body = body[:fault.after]
            self.close_connection = True
        elif fault and fault.kind == "length":
            self.close_connection = True
        self.wfile.write(body)
        self.wfile.flush()
        request.status, request.sent = answer.status, len(body)
        if fault and fault.kind == "cut":
            self.reset()

    def serve(self):
        owner = self.server.owner
        request = Request(self.command, self.path, {k.lower(): v for k, v in self.headers.items()})
        with owner.lock:
            owner.log.append(request)
            fault = next(iter([f for f in owner.faults if f.concerns(request)]), None)
        length = int(self.headers.get("Content-Length", "0"))
        if fault and fault.kind == "swallow":
            self.rfile.read(min(fault.after, length))
            return self.reset()
        request.body = self.read_body(length)
        if fault and fault.kind == "do":
            fault.action()
        if fault and fault.kind == "hold":
            owner.held.set()
            owner.released.wait()
        if fault and fault.kind == "status":
            return self.send(request, Answer(fault.status, fault.body, fault.headers), None)
        with owner.lock:
            answer = owner.answer(request)
        if fault and fault.kind == "lose":
            return self.reset()
        return self.send(request, answer, fault)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve  # noqa: N815  (http.server's names)

    def handle(self):
        """A client that ends its connection is not an error of the server."""
        try:
            super().handle()
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


class _Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def finish_request(self, request, client_address):
        request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        super().finish_request(request, client_address)

    def handle_error(self, request, client_address):
        """A reset by the client; all else shows in the log of the test that fails."""


class Server:
    """To be used in a `with`. A subclass has `answer(request)`, which is called for one request at a
    time."""

    def __init__(self):
        self.lock = threading.RLock()
        self.log, self.faults = [], []
        self.held, self.released = threading.Event(), threading.Event()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.port = self._http.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.release()
        self._http.shutdown()
        self._http.server_close()

    def answer(self, request):
        raise NotImplementedError

    def fault(self, kind, **about):
        known = ("cut", "truncate", "swallow", "lose", "status", "length", "hold", "do")
        assert kind in known, f"{kind} is not one of {known}"
        with self.lock:
            self.faults.append(Fault(kind, **about))
            self.held.clear()
            self.released.clear()

    def release(self):
        self.released.set()

    def requests(self, method=None, key="", **query):
        """Those of the log with this method, in the path, and these values of the query."""
        with self.lock:
            return [r for r in self.log
                    if method in (None, r.method) and key in r.path
                    and all(r.query.get(name) == value for name, value in query.items())]

    def forget(self):
        """Empties the log and removes all faults."""
        with self.lock:
            self.log.clear()
            self.faults.clear()


def span(header, size):
    """The first byte and the one after the last that a Range header asks for; None: the whole, and
    an empty range: it cannot be satisfied."""
    first, dash, last = header.removeprefix("bytes=").partition("-")
    if not header.startswith("bytes=") or not dash or "," in header:
        return None
    if not first:
        return (max(0, size - int(last)), size) if int(last) else (0, 0)
    end = min(size, int(last) + 1) if last else size
    return (int(first), end) if int(first) < end else (0, 0)
