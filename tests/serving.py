"""A server under test: started on a port that the system chooses, asked with http.client."""

import contextlib
import http.client
import json
import signal
import socket
import subprocess

import pytest


class Server:
    """A running `quern serve`. `get` and `post` use a new connection each."""

    def __init__(self, process, host, port):
        self.process, self.host, self.port = process, host, port

    def connection(self):
        return http.client.HTTPConnection(self.host, self.port, timeout=60)

    def ask(self, method, path, body=None, headers=()):
        """(status, headers, body)"""
        with contextlib.closing(self.connection()) as connection:
            connection.request(method, path, body, dict(headers))
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()

    def get(self, path, headers=()):
        return self.ask("GET", path, None, headers)

    def post(self, path, body, headers=()):
        """A body that is not bytes goes as JSON."""
        if not isinstance(body, bytes):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **dict(headers)}
        return self.ask("POST", path, body, headers)

    def raw(self, data, shut=False):
        """All that comes back for these bytes until the server ends the connection."""
        with socket.create_connection((self.host, self.port), timeout=60) as connection:
            connection.sendall(data)
            if shut:
                connection.shutdown(socket.SHUT_WR)
            got = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := connection.recv(65536):
                    got += piece
            return got

    def end(self, number=signal.SIGTERM):
        """(exit code, stderr)"""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60), self.process.stderr.read()


@contextlib.contextmanager
def serve(quern, *words, **more):
    """Waits for the line with the address."""
    process = subprocess.Popen([quern, "serve", *map(str, words), "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, **more)
    try:
        line = process.stdout.readline()
        said = "" if line else process.stderr.read()
        if "needs libmicrohttpd" in said:
            pytest.skip("libmicrohttpd is not installed")
        assert line.startswith("listening on http"), said
        host, port = line.strip().partition("://")[2].rsplit(":", 1)
        yield Server(process, host, int(port))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
