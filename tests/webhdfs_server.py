"""WebHDFS for tests, from its published description (no Hadoop is involved): a name node that answers
about files, and a data node, on another port, to which reading and writing are redirected. Faults and
the log are those of http_server.py; requests of both nodes are in one log.

    with webhdfs_server.WebHDFS() as hdfs:
        hdfs.put("/data/t.csv", b"...")
        run([quern, "data", "info", f"hdfs://{hdfs.place}/data/t.csv"])

With `users`, a request must name one of them (user.name). With `token`, it must have that delegation
token instead.
"""

import dataclasses
import itertools
import json
import posixpath

import http_server

Answer = http_server.Answer
ROOT = "/webhdfs/v1"
BLOCK = 128 << 20


@dataclasses.dataclass
class File:
    data: bytes
    number: int
    time: int  # milliseconds


class Refused(Exception):
    STATUS = {"IllegalArgumentException": 400, "SecurityException": 401, "AccessControlException": 403,
              "FileNotFoundException": 404, "FileAlreadyExistsException": 403, "IOException": 403,
              "UnsupportedOperationException": 400}

    def __init__(self, name, message):
        super().__init__(name)
        self.name, self.message = name, message


class WebHDFS(http_server.Server):
    def __init__(self, users=(), token=""):
        super().__init__()
        self.users, self.token = users, token
        self.files, self.folders = {}, {"/": 1}
        self._numbers = itertools.count(16385)
        self._times = itertools.count(1_700_000_000_000)
        self.data_node = _DataNode(self)
        self.place = f"127.0.0.1:{self.port}"

    def __enter__(self):
        self.data_node.__enter__()
        return super().__enter__()

    def __exit__(self, *about):
        super().__exit__(*about)
        self.data_node.__exit__(*about)

    # What a test puts and looks at.

    def put(self, path, data):
        with self.lock:
            self._make_folders(posixpath.dirname(path))
            self.files[path] = File(data, next(self._numbers), next(self._times))

    def get(self, path):
        with self.lock:
            return self.files[path].data if path in self.files else None

    def names(self):
        with self.lock:
            return sorted(self.files)

    # What a client gets.

    def answer(self, request):
        return self.checked(request, self._operation)

    def checked(self, request, operation):
        try:
            query = request.query
            if not request.path.startswith(ROOT + "/"):
                raise Refused("FileNotFoundException", f"not below {ROOT}")
            if self.token and query.get("delegation") != self.token:
                raise Refused("SecurityException", "The delegation token is missing or wrong")
            if self.users and not self.token and query.get("user.name") not in self.users:
                raise Refused("AccessControlException", f"Permission denied: {query.get('user.name')}")
            path = posixpath.normpath(request.path.removeprefix(ROOT))
            return operation(request, path, {name.lower(): value for name, value in query.items()})
        except Refused as why:
            return self.json({"RemoteException": {"exception": why.name, "message": why.message,
                                                  "javaClassName": f"java.io.{why.name}"}},
                             Refused.STATUS[why.name])

    @staticmethod
    def json(value, status=200):
        return Answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _operation(self, request, path, query):
        row = self.OPERATIONS.get((request.method, query.get("op", "").upper()))
        if not row:
            raise Refused("UnsupportedOperationException", f"{request.method} {request.target}")
        if request.body:
            raise Refused("IllegalArgumentException", "The name node takes no data")
        return row(self, request, path, query)

    def _make_folders(self, path):
        while path not in self.folders:
            if path in self.files:
                raise Refused("FileAlreadyExistsException", f"{path} is a file")
            self.folders[path] = next(self._numbers)
            path = posixpath.dirname(path)

    def _status(self, path, shown):
        common = {"accessTime": 0, "group": "g", "owner": "o", "pathSuffix": shown}
        if path in self.folders:
            return {**common, "type": "DIRECTORY", "length": 0, "blockSize": 0, "replication": 0,
                    "fileId": self.folders[path], "modificationTime": 1, "permission": "755"}
        if path not in self.files:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        file = self.files[path]
        return {**common, "type": "FILE", "length": len(file.data), "blockSize": BLOCK, "replication": 1,
                "fileId": file.number, "modificationTime": file.time, "permission": "644"}

    def _get_status(self, _request, path, _query):
        return self.json({"FileStatus": self._status(path, "")})

    def _list(self, _request, path, _query):
        if path in self.files:
            return self.json({"FileStatuses": {"FileStatus": [self._status(path, "")]}})
        if path not in self.folders:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        inside = sorted(name for name in {**self.files, **self.folders}
                        if name != "/" and posixpath.dirname(name) == path)
        return self.json({"FileStatuses": {"FileStatus": [
            self._status(name, posixpath.basename(name)) for name in inside]}})

    def _redirect(self, request, path, _query):
        if request.method == "GET":
            if path in self.folders:
                raise Refused("FileNotFoundException", f"Path is not a file: {path}")
            self._status(path, "")
        return Answer(307, b"", {"Location": self.data_node.address + request.target +
                                 f"&namenoderpcaddress=127.0.0.1:{self.port}"})

    def _rename(self, _request, path, query):
        to, overwrite = query.get("destination", ""), query.get("renameoptions", "") == "OVERWRITE"
        if not to.startswith("/"):
            raise Refused("IllegalArgumentException", "The destination is not absolute")
        if path not in self.files:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        if posixpath.dirname(to) not in self.folders or to in self.folders:
            raise Refused("FileNotFoundException", f"Its parent does not exist: {to}")
        if to in self.files and "renameoptions" in query and not overwrite:
            raise Refused("FileAlreadyExistsException", f"It exists: {to}")
        if to in self.files and not overwrite:
            return self.json({"boolean": False})
        self.files[to] = self.files.pop(path)
        return Answer(200) if "renameoptions" in query else self.json({"boolean": True})

    def _delete(self, _request, path, query):
        if path in self.files:
            del self.files[path]
            return self.json({"boolean": True})
        inside = [name for name in {**self.files, **self.folders} if name.startswith(path + "/")]
        if path in self.folders and inside and query.get("recursive") != "true":
            raise Refused("IOException", f"{path} is not empty")
        for name in [*inside, path]:
            self.files.pop(name, None)
        return self.json({"boolean": any(self.folders.pop(name, None) for name in [*inside, path])})

    def _make_folder(self, _request, path, _query):
        self._make_folders(path)
        return self.json({"boolean": True})

    OPERATIONS = {
        ("GET", "GETFILESTATUS"): _get_status, ("GET", "LISTSTATUS"): _list, ("GET", "OPEN"): _redirect,
        ("PUT", "CREATE"): _redirect, ("POST", "APPEND"): _redirect, ("PUT", "RENAME"): _rename,
        ("PUT", "MKDIRS"): _make_folder, ("DELETE", "DELETE"): _delete,
    }


class _DataNode(http_server.Server):
    """Holds the bytes; its log and its faults are those of the name node."""

    def __init__(self, names):
        super().__init__()
        self.names = names
        self.lock, self.log, self.faults = names.lock, names.log, names.faults

    def answer(self, request):
        return self.names.checked(request, self._operation)

    def _operation(self, request, path, query):
        row = {"OPEN": self._open, "CREATE": self._create, "APPEND": self._append}.get(
            query.get("op", "").upper())
        if not row or "namenoderpcaddress" not in query:
            raise Refused("IllegalArgumentException", "This was not redirected by the name node")
        return row(request, path, query)

    def _open(self, _request, path, query):
        if path not in self.names.files:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        data, first = self.names.files[path].data, int(query.get("offset", "0"))
        if first > len(data):
            raise Refused("IOException", f"Offset={first} out of the range")
        last = first + int(query["length"]) if "length" in query else len(data)
        return Answer(200, data[first:last], {"Content-Type": "application/octet-stream"})

    def _create(self, request, path, query):
        if path in self.names.files and query.get("overwrite", "false") != "true":
            raise Refused("FileAlreadyExistsException", f"{path} already exists")
        if path in self.names.folders:
            raise Refused("FileAlreadyExistsException", f"{path} is a folder")
        self.names.put(path, request.body)
        return Answer(201, b"", {"Location": f"hdfs://{self.names.place}{path}"})

    def _append(self, request, path, _query):
        if path not in self.names.files:
            raise Refused("FileNotFoundException", f"File does not exist: {path}")
        self.names.put(path, self.names.files[path].data + request.body)
        return Answer(200)
