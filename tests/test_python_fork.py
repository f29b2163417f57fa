"""Children that a Python process makes by os.fork: they train, load and predict (docs/python.md)."""

import pytest

from python_package import python

pytest.importorskip("numpy")

FORK = """
import os, quern
options = dict(model="dense 20 tanh; dense 10 softmax", epochs=2, batch=32, threads=2, devices="cpu")
data = quern.digits(300)
model = quern.train(data, **options)
model.save(os.sys.argv[1])
child = os.fork()
if child == 0:
    same = quern.train(data, **options).digest == model.digest
    same = same and (model.predict(data) == quern.load(os.sys.argv[1]).predict(data)).all()
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1], quern.train(data, **options).digest == model.digest)
"""


def test_fork(tmp_path):
    assert python(FORK, tmp_path / "m") == "0 True\n"


FORK_BESIDE = """
import os, threading, quern
options = dict(model="dense 20 tanh; dense 10 softmax", batch=32, devices="cpu")
data = quern.digits(300)
want = quern.train(data, epochs=2, **options).digest
begun, stop = threading.Event(), threading.Event()

def epoch(e):
    begun.set()
    return not stop.is_set()

other = threading.Thread(target=lambda: quern.train(data, epochs=10**6, on_epoch=epoch, **options))
other.start()
begun.wait()
for _ in range(8):
    child = os.fork()
    if child == 0:
        os._exit(quern.train(data, epochs=2, **options).digest != want)
    print(os.waitpid(child, 0)[1], end=" ")
stop.set()
other.join()
print(quern.train(data, epochs=2, **options).digest == want)
"""


def test_fork_while_another_thread_trains():
    """No lock that the other thread held stays locked in the child."""
    assert python(FORK_BESIDE) == "0 0 0 0 0 0 0 0 True\n"


FORK_IN_DIGEST = """
import numpy, os, quern, signal, threading, time
values = numpy.zeros((2000000, 40), "uint8")
want = quern.Data(values).digest
for _ in range(4):
    data = quern.Data(values)
    other = threading.Thread(target=lambda: data.digest)
    other.start()
    time.sleep(0.005)
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(data.digest != want)
    print(os.waitpid(child, 0)[1], end=" ")
    other.join()
"""


def test_fork_while_another_thread_computes_a_digest():
    assert python(FORK_IN_DIGEST) == "0 0 0 0 "
