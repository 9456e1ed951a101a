#!/usr/bin/env python3
"""Feed a built `relayout` files that are damaged, hostile or absurd, and check that it stays in control.

    .relayout/venv/bin/python tools/fuzz_files.py --bin target/release/relayout --models a.onnx b.onnx --work target/fuzz \\
        [--cuts N] [--flips N] [--seed S] [--seconds N] [--only TEXT] [--keep]

For each model, --cuts files that end early and --flips files with one to eight flipped bits; then the made cases of
tools/fuzz_cases.py. Each is one run of `BIN optimize IN -o OUT`, which must, within 20 s (--seconds) and 2 GB,

- exit 0 with an output that ONNX Runtime loads if it loads the input (every rewrite off), with the same results where
  both can be run at little cost, or
- exit 1 with one line on stderr that starts with `error`, nothing written, an output that was there before untouched, and
  for a reason: what ONNX Runtime loads is not to be refused, but for what STRICTER names,

and must never panic, die by a signal, or change its input. Cases that reach for files outside the model's folder must be
refused. The same seed makes the same files. Small models are best: every case is a copy. Exit status 1 if any case failed;
the files of failed cases stay in --work. Needs numpy, onnx, onnxruntime.
"""
import argparse
import json
import os
import random
import re
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

SECONDS = 20.0
MEMORY = 2 << 30
SENTINEL = b"this was here before\n"
CHEAP_BYTES = 64 << 20
DIED = "died"
# Where relayout refuses what ONNX Runtime lets pass: names that are no UTF-8, which protobuf forbids, fields of another wire
# type than theirs, which protobuf takes for unknown ones, tensors in segments, and a perm that does not name every axis.
STRICTER = ["the text is not UTF-8", "the schema has it as", "it is stored in segments", "is not a permutation of"]
ERROR_LINE = re.compile(r"^(?:[\w.-]+: )?error\b[^\n]*:")


# ---- processes -------------------------------------------------------------------------------------------------------

def launcher(requests, replies):
    """Runs commands for the main process. It exists because Linux counts the memory of the process that forks towards the
    peak of the child, so whoever forks must be small: this is forked before anything large is imported."""
    def limits():
        # Address space beyond what the watch allows: thread stacks and mapped files count here but not as memory used.
        resource.setrlimit(resource.RLIMIT_AS, (3 * MEMORY, 3 * MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    for line in requests:
        job = json.loads(line)
        begin = time.monotonic()
        with open(job["stdout"], "wb") as out, open(job["stderr"], "wb") as err:
            child = subprocess.Popen(job["argv"], stdin=subprocess.DEVNULL, stdout=out, stderr=err, preexec_fn=limits,
                                     env={**os.environ, "RUST_BACKTRACE": "0"})
            late, pause = False, 0.001
            while True:
                pid, status, usage = os.wait4(child.pid, os.WNOHANG)
                if pid:
                    break
                if not late and time.monotonic() - begin > job["seconds"]:
                    late = True
                    child.kill()
                time.sleep(pause)
                pause = min(0.02, pause * 1.5)
        child.returncode = os.waitstatus_to_exitcode(status)
        replies.write(json.dumps({"code": child.returncode, "late": late, "seconds": time.monotonic() - begin,
                                  "memory": usage.ru_maxrss * 1024}) + "\n")
        replies.flush()


def start_launcher():
    request, reply = os.pipe(), os.pipe()
    if os.fork() == 0:
        os.close(request[1])
        os.close(reply[0])
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        with os.fdopen(request[0]) as requests, os.fdopen(reply[1], "w") as replies:
            launcher(requests, replies)
        os._exit(0)
    os.close(request[0])
    os.close(reply[1])
    to, back = os.fdopen(request[1], "w"), os.fdopen(reply[0])

    def launch(argv, stdout, stderr, seconds):
        to.write(json.dumps({"argv": [str(a) for a in argv], "stdout": str(stdout), "stderr": str(stderr), "seconds": seconds}) + "\n")
        to.flush()
        return json.loads(back.readline())
    return launch


class Judge:
    """ONNX Runtime in a process of its own, which damaged files may bring down: it is then started again."""

    def __init__(self):
        self.child = None

    def loads(self, source):
        """Whether it loads an input. Some hostile ones keep it busy for ever, and small ones take no time if they load at all."""
        self.ask("forget")
        return self.ask("load", str(source), seconds=4.0 if source.stat().st_size < 1 << 20 else SECONDS) is True

    def ask(self, *command, seconds=SECONDS):
        """The judge's answer, or DIED if it did or took too long."""
        if self.child is None or self.child.poll() is not None:
            self.child = subprocess.Popen([sys.executable, __file__, "--judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL, text=True, bufsize=1)
        try:
            self.child.stdin.write(json.dumps(command) + "\n")
            self.child.stdin.flush()
            if select.select([self.child.stdout], [], [], seconds)[0]:
                line = self.child.stdout.readline()
                if line:
                    return json.loads(line)["answer"]
        except OSError:  # it died between two questions
            pass
        self.stop()
        return DIED

    def stop(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self.child = None


def judge():
    """The other end of Judge: reads a command and a path a line, and answers each."""
    resource.setrlimit(resource.RLIMIT_AS, (4 * MEMORY, 4 * MEMORY))
    import numpy as np
    import onnxruntime as ort
    ort.set_default_logger_severity(4)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    sessions, kept = {}, []

    def session(path):
        if path not in sessions:
            options = ort.SessionOptions()
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
            options.intra_op_num_threads, options.log_severity_level = 1, 4
            sessions[path] = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        return sessions[path]

    def feed(model):
        kinds = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16, "tensor(int64)": np.int64,
                 "tensor(int32)": np.int32, "tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(bool)": np.bool_}
        noise, feeds = np.random.default_rng(0), {}
        for port in model.get_inputs():
            shape = [dim if isinstance(dim, int) else 1 if axis == 0 else 64 for axis, dim in enumerate(port.shape)]
            size = 1
            for dim in shape:
                size *= max(dim, 0)
            if port.type not in kinds or size > 1 << 21:
                return None
            kind = np.dtype(kinds[port.type])
            feeds[port.name] = (noise.standard_normal(shape) if kind.kind == "f" else noise.integers(0, 2, shape)).astype(kind)
        return feeds

    def reference(path):
        """Runs the input; whether there is something to hold the output against."""
        kept.clear()
        feeds = feed(session(path))
        if feeds is None:
            return False
        names = [port.name for port in session(path).get_outputs()]
        kept.extend([feeds, names, session(path).run(None, feeds)])
        return True

    def compare(path):
        """What differs between the output at `path` and the reference, or None."""
        feeds, names, expected = kept
        found = [port.name for port in session(path).get_outputs()]
        if names != found:
            return f"outputs {names} became {found}"
        for name, x, y in zip(names, expected, session(path).run(None, feeds)):
            x, y = np.asarray(x), np.asarray(y)
            if x.shape != y.shape or x.dtype != y.dtype:
                return f"output {name} was {x.dtype}{list(x.shape)} and is {y.dtype}{list(y.shape)}"
            if x.dtype.kind not in "fiub":
                if x.tolist() != y.tolist():
                    return f"output {name} differs"
                continue
            x, y = x.astype(np.float64), y.astype(np.float64)
            # A flipped exponent makes numbers that overflow or not by the order of a sum; nothing can be said then.
            if not x.size or not np.isfinite(x).all() or np.abs(x).max() > 1e30:
                continue
            scale = float(np.sqrt(np.mean(x * x))) or 1.0
            error = float(np.sqrt(np.mean((x - y) ** 2))) / scale
            if not error < 1e-3:
                return f"output {name} differs: relative rms {error:.1e}"
        return None

    def load(path):
        session(path)
        return True

    commands = {"load": load, "reference": reference, "compare": compare, "forget": lambda: sessions.clear() or True}
    for line in sys.stdin:
        command, *paths = json.loads(line)
        try:
            answer = commands[command](*paths)
        except Exception as error:
            answer = f"it does not run: {' '.join(str(error).split())[:160]}" if command == "compare" else False
        answers.write(json.dumps({"answer": answer}) + "\n")
        answers.flush()


# ---- damaged copies --------------------------------------------------------------------------------------------------

def cut_lengths(size, count, rng):
    edges = [0, 1, 2, 3, 4, 8, 16, 64, size - 1, size - 2, size - 8, size - 64]
    lengths = [n for n in edges if 0 <= n < size][:max(1, count // 2)]
    while len(lengths) < count:
        lengths.append(rng.randrange(size))
    return lengths[:count]


def payload_ranges(data):
    """Where the weights lie in `data`, in order: (begin, end) of the raw data of every initializer."""
    import onnx
    ranges, at = [], 0
    for tensor in onnx.load_from_string(data).graph.initializer:
        if len(tensor.raw_data) >= 64:
            begin = data.find(tensor.raw_data, at)
            at = begin + len(tensor.raw_data)
            ranges.append((begin, at))
    return ranges


def flipped(data, payloads, rng):
    """`data` with one to eight bits flipped: three times in four in its structure, that is outside of `payloads`, where a
    model has nearly all of its bytes; else anywhere."""
    data = bytearray(data)
    structure = len(data) - sum(end - begin for begin, end in payloads)
    for _ in range(rng.choice([1, 1, 2, 8])):
        if rng.randrange(4) == 0:
            at = rng.randrange(len(data))
        else:
            at = rng.randrange(structure)
            for begin, end in payloads:
                if at < begin:
                    break
                at += end - begin
        data[at] ^= 1 << rng.randrange(8)
    return bytes(data)


def damaged(models, cuts, flips, seed):
    """(group, name, function that writes the case into a folder and returns the input's path, must_refuse)."""
    def writer(make):
        def write(folder):
            path = folder / "in.onnx"
            path.write_bytes(make())
            return path
        return write

    for model in models:
        data, rng = model.read_bytes(), random.Random(f"{seed} {model.name}")
        if not data:
            sys.exit(f"fuzz_files.py: {model} is empty")
        # Every lambda keeps its own `data`: they run when the loop is over.
        for length in cut_lengths(len(data), cuts, rng):
            yield "cut", f"{model.stem}-cut-{length}", writer(lambda data=data, length=length: data[:length]), False
        payloads = payload_ranges(data)
        for index in range(flips):
            case_seed = rng.getrandbits(64)
            make = lambda data=data, skip=payloads, s=case_seed: flipped(data, skip, random.Random(s))
            yield "flip", f"{model.stem}-flip-{index}", writer(make), False


# ---- one case --------------------------------------------------------------------------------------------------------

def listing(folder):
    return {str(p.relative_to(folder)): (p.lstat().st_size, p.lstat().st_mtime_ns) for p in folder.rglob("*")}


def complaint(text):
    """What is wrong with the stderr of a refusal, or None."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        return f"{len(lines)} lines on stderr, not one"
    if not ERROR_LINE.match(lines[0]):
        return "stderr does not start with `error`"
    return None


def run_case(launch, ort, binary, folder, write, must_refuse, had_output, seconds):
    """(outcome, what is wrong or None, the launcher's reply) of one case in the fresh folder `folder`."""
    inside, out_folder = folder / "in", folder / "out"
    inside.mkdir(parents=True)
    out_folder.mkdir()
    source, output = write(inside), out_folder / "out.onnx"
    if had_output:
        output.write_bytes(SENTINEL)
    before = listing(inside), listing(out_folder)
    stdout, stderr = folder / "stdout", folder / "stderr"
    reply = launch([binary, "optimize", source, "-o", output], stdout, stderr, seconds)
    text = stderr.read_text(errors="replace")
    code, wrong = reply["code"], None
    outcome = {0: "optimized", 1: "refused"}.get(code, "broken")
    if "panicked" in text:
        wrong = "it panicked: " + text.strip().splitlines()[0][:160]
    elif reply["late"]:
        wrong = f"still running after {seconds:.0f} s"
    elif code < 0:
        wrong = f"died by signal {-code}"
    elif code not in (0, 1):
        wrong = f"exit {code}: {text.strip()[:120]}"
    elif reply["memory"] > MEMORY:
        wrong = f"{reply['memory'] >> 20} MB of memory"
    elif listing(inside) != before[0]:
        wrong = "it changed the folder of its input"
    elif code == 1:
        wrong = complaint(text)
        if wrong is None and listing(out_folder) != before[1]:
            wrong = "it refused, but wrote to the folder of its output"
        if wrong is None and not must_refuse and not any(reason in text for reason in STRICTER):
            if ort.loads(source):
                wrong = f"it refused what ONNX Runtime loads: {text.strip()[:160]}"
    elif must_refuse:
        wrong = "it accepted what it must refuse"
    else:
        wrong = judged(ort, source, output)
    return ("broken" if wrong else outcome), wrong, reply


def judged(ort, source, output):
    """What is wrong with the output of a success, or None."""
    if not output.is_file() or output.read_bytes()[:len(SENTINEL)] == SENTINEL:
        return "exit 0, but no output"
    # External data lies beside the output under a name that stands in it.
    written = output.read_bytes()
    stray = [p.name for p in output.parent.iterdir() if p != output and p.name.encode() not in written]
    if stray:
        return f"it left {stray[0]} beside its output"
    if not ort.loads(source):
        return None
    if ort.ask("load", str(output)) is not True:
        return "ONNX Runtime loads the input but not the output"
    if source.stat().st_size > CHEAP_BYTES or ort.ask("reference", str(source)) is not True:
        return None
    answer = ort.ask("compare", str(output))
    return "ONNX Runtime runs the input, but dies or hangs on the output" if answer == DIED else answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bin", required=True, help="the built relayout")
    parser.add_argument("--models", nargs="*", default=[], help="models to damage; without any, only the made cases run")
    parser.add_argument("--work", required=True, help="folder for the cases; its content is replaced")
    parser.add_argument("--cuts", type=int, default=24)
    parser.add_argument("--flips", type=int, default=48)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="limit of a run; a debug build needs more")
    parser.add_argument("--only", help="only the cases whose name contains this")
    parser.add_argument("--keep", action="store_true", help="keep the files of all cases, not only of failed ones")
    options = parser.parse_args()
    binary, work = Path(options.bin).resolve(), Path(options.work)
    models = [Path(model) for model in options.models]
    for path in [binary, *models]:
        if not path.is_file():
            sys.exit(f"fuzz_files.py: there is no file {path}")
    if work.exists() and any(work.iterdir()) and not (work / ".fuzz_files").exists():
        sys.exit(f"fuzz_files.py: {work} has other files in it; give an empty folder")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / ".fuzz_files").touch()
    work = work.resolve()

    launch, ort = start_launcher(), Judge()
    sys.dont_write_bytecode = True
    import fuzz_cases  # imports onnx: after the launcher was forked
    table, failures, count = {}, [], 0
    cases = list(damaged(models, options.cuts, options.flips, options.seed)) + list(fuzz_cases.cases())
    for group, name, write, must_refuse in cases:
        if options.only and options.only not in name:
            continue
        folder = work / name
        outcome, wrong, reply = run_case(launch, ort, binary, folder, write, must_refuse, count % 2 == 0, options.seconds)
        count += 1
        row = table.setdefault(group, {"cases": 0, "optimized": 0, "refused": 0, "broken": 0, "seconds": 0.0, "memory": 0})
        row["cases"] += 1
        row[outcome] += 1
        row["seconds"], row["memory"] = max(row["seconds"], reply["seconds"]), max(row["memory"], reply["memory"])
        if wrong:
            failures.append(name)
            print(f"FAILED {name}: {wrong}", flush=True)
        elif not options.keep:
            shutil.rmtree(folder)
    ort.stop()

    print(f"\n{'group':10}{'cases':>7}{'optimized':>11}{'refused':>9}{'failed':>8}{'slowest':>10}{'largest':>10}")
    for group, row in table.items():
        print(f"{group:10}{row['cases']:7}{row['optimized']:11}{row['refused']:9}{row['broken']:8}"
              f"{row['seconds']:8.2f} s{row['memory'] >> 20:7} MB")
    print(f"{count - len(failures)} passed, {len(failures)} failed" + (f"; their files are in {work}" if failures else ""))
    return 1 if failures or not count else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--judge"]:
        judge()
    else:
        sys.exit(main())
