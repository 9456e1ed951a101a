"""The command ``relayout`` of the package."""

import signal
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

import nets

import relayout

SCRIPT = str(Path(sysconfig.get_path("scripts"), "relayout"))


def run(*words):
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True)


def test_it_says_its_version():
    done = run("-V")
    assert (done.returncode, done.stdout) == (0, f"relayout {relayout.__version__}\n")
    assert "instruction sets" in run("--version").stdout


def test_it_optimizes():
    done = run("optimize", "tf_unet.onnx")
    assert done.returncode == 0 and done.stdout.startswith("tf_unet.relayout.onnx: moves 36 -> 2")
    assert Path("tf_unet.relayout.onnx").read_bytes() == relayout.optimize(Path("tf_unet.onnx").read_bytes()).model


def test_its_exit_status_says_what_went_wrong():
    assert run("optimize", "none.onnx").returncode == 1
    usage = run("optimise", "tf_unet.onnx")
    assert usage.returncode == 2 and "optimize" in usage.stderr, "it knows what was meant"
    assert run("audit", "tf_unet.onnx", "--fail-above", "0").returncode == 3
    assert run("--help").returncode == 0


def test_it_is_also_a_module():
    done = subprocess.run([sys.executable, "-m", "relayout", "targets"], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("onnx\n")


def test_what_is_piped_is_read():
    with open("tf_unet.onnx", "rb") as model:
        done = subprocess.run([SCRIPT, "optimize", "-", "-o", "-"], stdin=model, capture_output=True)
    assert done.returncode == 0 and done.stdout == relayout.optimize(Path("tf_unet.onnx").read_bytes()).model


def test_ctrl_c_ends_it():
    Path("slow.onnx").write_bytes(nets.stubborn(4000).SerializeToString())
    with subprocess.Popen([SCRIPT, "explain", "slow.onnx"], stdout=-1, stderr=-1) as program:
        time.sleep(1)
        assert program.poll() is None, "it ended too soon to be interrupted"
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=20)
    assert program.returncode == -signal.SIGINT
