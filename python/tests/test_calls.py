"""How calls behave: progress, signals, threads, what is imported."""

import os
import signal
import subprocess
import sys
import threading
import time

import nets
import pytest

import relayout


def test_progress_goes_up_to_its_total():
    steps = []
    relayout.optimize("tf_unet.onnx", "out.onnx", progress=steps.append)
    assert steps[0].step == "reading" and steps[-1].step == "done" and "assign" in {s.step for s in steps}
    assert [s.done for s in steps] == list(range(len(steps)))
    assert {s.total for s in steps} == {steps[-1].done}


def test_a_bar_of_tqdm_is_moved(capsys):
    tqdm = pytest.importorskip("tqdm").tqdm
    with tqdm() as bar:
        relayout.optimize("tf_unet.onnx", progress=bar)
        assert bar.n == bar.total > 10
    relayout.optimize("tf_unet.onnx", progress=True)
    assert "relayout" in capsys.readouterr().err


@pytest.mark.parametrize("at", ["reading", "assign", "looking again", "writing"])
def test_an_exception_of_the_progress_function_ends_the_call(at):
    def refuse(step):
        if step.step == at:
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        relayout.optimize("tf_unet.onnx", "out.onnx", progress=refuse)
    time.sleep(0.5)
    assert not os.path.exists("out.onnx"), "the work stops, and writes nothing"


class Rang(Exception):
    pass


def test_signals_are_heard_while_the_work_goes_on():
    """A handler in Python runs while the other half works, and its exception ends the call, as that of ctrl-C does."""

    def ring(*_):
        raise Rang

    # Pricing so many moves takes more than a minute.
    model = nets.stubborn(1500)
    old = signal.signal(signal.SIGALRM, ring)
    begun = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.raises(Rang):
            relayout.explain(model, price_moves=1500)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert time.monotonic() - begun < 20


def test_ctrl_c_ends_a_program():
    script = (
        # Where tests run in the background, a shell lets its programs ignore the signal.
        "import signal, relayout, nets\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "m = nets.stubborn(1500)\nprint('ready', flush=True)\nrelayout.explain(m, price_moves=1500)"
    )
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(__file__)}
    with subprocess.Popen([sys.executable, "-c", script], stdout=-1, stderr=-1, text=True, env=environment) as program:
        assert program.stdout.readline() == "ready\n"
        time.sleep(0.3)
        program.send_signal(signal.SIGINT)
        _, error = program.communicate(timeout=20)
    assert error.rstrip().endswith("KeyboardInterrupt"), error


def test_other_threads_run_meanwhile():
    """Python's lock is free: a thread counts while another one waits for the library."""
    model, stop, counted = nets.stubborn(150), threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    relayout.explain(model, price_moves=20)
    taken, seen = time.monotonic() - begun, counted[0]
    stop.set()
    thread.join()
    assert seen > taken * 100, (seen, taken)


def test_calls_from_several_threads_give_the_same():
    with open("tf_unet.onnx", "rb") as file:
        data = file.read()
    results = []
    threads = [threading.Thread(target=lambda: results.append(relayout.optimize(data).model)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 and len(set(results)) == 1


def test_nothing_large_is_imported_before_it_is_needed():
    script = (
        "import sys, relayout; relayout.optimize('tf_unet.onnx', 'out.onnx'); relayout.targets()\n"
        "print([m for m in ('numpy', 'onnx', 'onnx_ir', 'onnxruntime', 'tqdm') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_second_name_is_the_same_package_and_tells_another_relayout_from_it(tmp_path):
    import onnx_relayout

    assert onnx_relayout is relayout
    for text, cause in [("def fix(text): ...", "None"), ("raise SystemError('too old')", "SystemError('too old')")]:
        (tmp_path / "relayout.py").write_text(text)
        script = "try:\n    import onnx_relayout\nexcept ImportError as e:\n    print(repr(e.__cause__), e)"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
        assert done.stdout.startswith(cause) and "pip uninstall relayout" in done.stdout, done
