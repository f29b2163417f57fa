"""make gpu-check on the emulated GPU, with faults that it must name, and on PoCL."""

import os
import re
import signal
import socket
import subprocess
import sys
import types

import pytest

import builds
import devices

sys.path[:0] = [str(builds.ROOT / "scripts"), str(builds.ROOT / "bench" / "peers")]

import gpu_check_run  # noqa: E402
import gpu_check_steps  # noqa: E402

SCRIPT = builds.ROOT / "scripts" / "gpu_check.py"


@pytest.fixture
def words(quern, tmp_path):
    """words(steps, option, ...): the command, of which only these steps are done, and little of them."""
    builds.beside(quern, "test.tests.gpu_kernels", "tests/tests.gpu_kernels")
    return lambda steps, *more: [sys.executable, SCRIPT, "--quick", "--program", quern, "--report", tmp_path / "report.txt",
                                 "--steps", steps, *map(str, more)]


def check(words, environment, report, status):
    """(what it printed, the report): the verdict is in both, and nothing in them is private."""
    done = subprocess.run(words, capture_output=True, text=True, env=environment, timeout=600)
    assert done.returncode == status, done.stdout + done.stderr
    text = report.read_text()
    verdict = re.search(r"^verdict: (.*)$", text, re.M)[1]
    assert f"gpu-check: {verdict}\n" in done.stdout
    assert not re.search(r"(?<![\w<>./])/(?:\w+/)+\w+", text), text
    for name in (socket.gethostname(), environment.get("USER", ""), str(builds.ROOT)):
        assert not name or name == "root" or not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text), name
    return done.stdout, text


@pytest.fixture
def emulated(tmp_path):
    _, environment = devices.emulated_cuda(1)
    return {**environment, "USER": "adalovelace"}


def test_passes(words, emulated, tmp_path):
    told, text = check(words("machine,kernels,recipes,lost"), emulated, tmp_path / "report.txt", 0)
    assert re.search(r"^verdict: PASSED on cuda:0: all \d+ checks were right", text, re.M), text
    assert "[ 1 of 4]" in told and "[ 4 of 4]" in told
    assert "checked: cuda:0, Emulated GPU 0, compute capability 9.0, driver 580.00.01" in text
    assert "QN_FAKE_CUDA" in text and "kill -9 of a training: in the middle" in text


def test_a_wrong_kernel_is_named(words, emulated, tmp_path):
    told, text = check(words("kernels,recipes"), {**emulated, "QN_FAKE_WRONG_KERNEL": "qn_update"},
                       tmp_path / "report.txt", 1)
    assert re.search(r"^verdict: FAILED on cuda:0: 4 faults", text, re.M), text
    assert re.search(r"^1\. kernels: kernel qn_update is wrong: launch 1 of it, .* is [0-9a-f]{8} instead of", text, re.M)
    assert "2. recipes: recipe" in text and "the same again; the processor is right" in text
    assert told.count("FAULT: ") == 4 and "kernel qn_loss" not in text


def test_a_device_that_hangs_is_named(words, emulated, tmp_path):
    """The kernel, by Quern's own time limit; and the others go on."""
    _, text = check(words("machine,kernels,beside", "--seconds", 6), {**emulated, "QN_FAKE_CUDA": "late=1,hang=60"},
                    tmp_path / "report.txt", 1)
    assert re.search(r"kernels: kernel qn_\w+ failed: launch \d+ of it, .*did not end its work within 2 s", text), text
    assert re.search(r"beside: recipe dropout .*cuda:0 was lost on the way: .* did not end its work", text)
    assert re.search(r"^machine +1 +0 .* done$", text, re.M)


def test_a_command_that_hangs_is_named(words, quern, emulated, tmp_path):
    """Where Quern cannot end it, such as in a call of the driver."""
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\ncase "$*" in *adamw*cuda:0*) exec sleep 1000;; esac\nexec {quern} "$@"\n')
    program.chmod(0o755)
    _, text = check(words("recipes", "--seconds", 8, "--program", program), emulated, tmp_path / "report.txt", 1)
    assert "1. recipes: recipe adamw: did not end within 8 s" in text
    assert re.search(r"^recipes +2 +1 .* done$", text, re.M), text


def test_opencl(words, tmp_path):
    names, environment = devices.pocl()
    _, text = check(words("machine,beside", "--device", names[0]), environment, tmp_path / "report.txt", 0)
    assert re.search(r"^verdict: PASSED on opencl:\d+: all \d+ checks", text, re.M), text


def test_nothing_to_check(words, tmp_path):
    environment = {**os.environ, "OCL_ICD_VENDORS": "/nowhere", "OCL_ICD_FILENAMES": "/nowhere"}
    done = subprocess.run(words("machine"), capture_output=True, text=True, env=environment, timeout=120)
    if "at most 10 minutes" in done.stdout:
        pytest.skip("this machine has a GPU")
    assert done.returncode == 2 and "there is no GPU here" in done.stdout and "no cuda: " in done.stdout
    assert not (tmp_path / "report.txt").exists()


def test_ctrl_c(words, emulated, tmp_path):
    """The report has what was found, and says that it was stopped."""
    child = subprocess.Popen(words("machine,recipes"), stdout=subprocess.PIPE, text=True, env=emulated)
    for line in child.stdout:
        if line.startswith("[ 2 of 2]"):
            break
    child.send_signal(signal.SIGINT)
    told = child.stdout.read()
    assert child.wait(60) == 130
    assert re.search(r"STOPPED: by Ctrl-C; [1-9]\d* checks were right", told), told
    assert "STOPPED: by Ctrl-C" in (tmp_path / "report.txt").read_text()


@pytest.fixture
def simulated(monkeypatch, tmp_path):
    """run(seconds of each command, of the small training, minutes): the check of a device that takes so
    long, by a clock of its own; 24 commands a step, of which 'hung' never ends."""
    clock = [0.0]
    monkeypatch.setattr(gpu_check_run, "time", types.SimpleNamespace(monotonic=lambda: clock[0]))

    def run(seconds, training, minutes=10, hung=False):
        def command(words, limit, environment, folder):
            takes = training() if "small" in words else seconds if "hung" not in words else float("inf")
            clock[0] += min(takes, limit)
            return gpu_check_run.Done(words, 0 if takes <= limit else None, "", "", min(takes, limit))

        def work(check):
            check.each(["hung"] * hung + list(range(24)), lambda word: check.works(check.run(word, what="it"), "it") and check.passes())

        clock[0] = 0.0
        check = gpu_check_run.Check(
            program="quern", device="cuda:0", folder=tmp_path, report=tmp_path / "report.txt", limit=60, deadline=60 * minutes - 5,
            quick=False, environment={}, scrub=gpu_check_run.Scrub([]), ends=60 * minutes, seconds=60 * minutes,
            training=lambda: ["small"], begun=0.0)
        check.processes.run = command
        check.begin_pace()
        steps = gpu_check_steps.STEPS
        for i, (name, title, most, _) in enumerate(steps):
            check.perform(name, title, most, sum(step[2] for step in steps[i + 1:]), work)
        assert clock[0] <= 60 * minutes - 5, "the check takes longer than it may"
        return check, check.judge()
    return run


def test_slow_devices(simulated):
    """The check ends in its time whatever the device, does something of each step, and says what it left
    out. That a device is slow is not a fault, and a command that hangs is one."""
    check, verdict = simulated(0.5, lambda: 1.0)
    assert verdict == "PASSED on cuda:0: all 312 checks were right, 158 s"
    for seconds, training in (4.0, 1.0), (4.0, 9.0), (20.0, 9.0), (70.0, 9.0):
        check, verdict = simulated(seconds, lambda training=training: training)
        assert re.match(r"NOT COMPLETE on cuda:0: all \d+ checks were right, .* s; not done: ", verdict), verdict
        assert ("the device is slow: a small training takes 9 s" in verdict) == (training == 9.0), verdict
        assert all(step.passed or seconds > 15 for step in check.results) and not check.faults, verdict
        assert re.search(r"\w+ \(\d+ of 24\)", verdict), verdict
        assert "; not done: " in check.report.read_text().partition("---- steps")[2]
    longer = simulated(20.0, lambda: 9.0, minutes=60)[0]
    assert sum(s.passed for s in longer.results) > 5 * sum(s.passed for s in simulated(20.0, lambda: 9.0)[0].results)
    check, verdict = simulated(0.5, lambda: 1.0, hung=True)
    assert verdict.startswith("FAILED on cuda:0: ") and {fault[1] for fault in check.faults} == {"it: did not end within 60 s"}
    assert "time is over, after 33 s of it" in check.report.read_text(), "a step with less time than a command's limit"
    # The machine became busy after the first small trainings.
    first = iter([1.0, 1.0])
    check, verdict = simulated(70.0, lambda: next(first, 8.0))
    assert not check.faults and "the device is slow: a small training takes 8 s" in verdict, verdict


def test_private_words(monkeypatch, tmp_path):
    monkeypatch.setenv("USER", "ada")
    monkeypatch.setattr(gpu_check_run, "getpass_user", lambda: "ada.l")
    monkeypatch.setattr(socket, "gethostname", lambda: "engine.london.example")
    scrub = gpu_check_run.Scrub([(tmp_path, "<scratch>"), ("/people/ada/quern", "<quern>"), ("/people/ada", "<home>")])
    for text, wanted in {
            f"{tmp_path}/a.npy: broken": "<scratch>/a.npy: broken", "/people/ada/quern/build/quern": "<quern>/build/quern",
            "'/people/ada/x'": "'<home>/x'", "/people/charles/x.c:3": "<path>:3", "ADA.L on Engine.London.Example": "<user> on <host>",
            "(engine) ada": "(<host>) <user>", "/usr/lib/x86/libcuda.so.1 is there": "<path>/libcuda.so.1 is there",
            "adapter, engines: 3/4, cuda:0, 1/2/3": "adapter, engines: 3/4, cuda:0, 1/2/3",
            "listens at 10.0.0.7:4100": "listens at <address>:4100", "driver 580.65.06": "driver 580.65.06"}.items():
        assert scrub.text(text) == wanted
    assert scrub.left("by ada at engine") and not scrub.left("adapter, engines")


def test_the_suite_without_cmocka(quern, tmp_path):
    """gpu-check builds it with tests/plain_cmocka where there is no cmocka: it reports as cmocka does."""
    source = tmp_path / "plain_test.c"
    source.write_text("""#include <cmocka.h>
static void right(void **state) { (void)state; assert_true(1); assert_int_equal(2, 2); }
static void wrong(void **state) { (void)state; assert_int_equal(3, 4); }
static void told(void **state) { (void)state; fail_msg("no %d", 5); }
static void left(void **state) { (void)state; skip(); }
static int end(void **state) { (void)state; print_message("end\\n"); return 0; }
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(right), cmocka_unit_test(wrong), cmocka_unit_test(told),
                                       cmocka_unit_test(left)};
    return cmocka_run_group_tests(tests, NULL, end);
}
""")
    builds.require("cc")
    subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-I", builds.ROOT / "tests" / "plain_cmocka", source,
                    "-o", tmp_path / "plain"], check=True)
    done = subprocess.run([tmp_path / "plain"], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.findall(r"^\[ *(\w+) *\] (\w+)", done.stdout, re.M) == [
        ("RUN", "right"), ("OK", "right"), ("RUN", "wrong"), ("FAILED", "wrong"), ("RUN", "told"), ("FAILED", "told"),
        ("RUN", "left"), ("SKIPPED", "left")]
    assert "3 and not 4" in done.stdout and "no 5" in done.stdout and "end" in done.stdout
    suite = [builds.ROOT / "src" / "device" / "conformance_test.c", builds.ROOT / "tests" / "gpu_kernels_test.c"]
    generated = builds.ready("release") / "generated"
    for file in suite:
        subprocess.run(["cc", "-std=c17", "-fsyntax-only", "-D_GNU_SOURCE", "-Wall", "-Werror", "-I",
                        builds.ROOT / "tests" / "plain_cmocka", "-I", builds.ROOT / "src", "-I", builds.ROOT / "tests",
                        "-I", builds.ROOT / "include", "-I", generated, file], check=True)
