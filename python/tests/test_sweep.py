"""Sweeps: many models, each in a process of its own, results once."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import nets
import onnx
import pytest

import relayout

pytest.importorskip("onnxruntime", reason="onnxruntime needs CPython 3.11 or newer")

import fsspec
import psutil
import pyarrow.parquet as parquet

from relayout.sweep import Limits, sweep


@pytest.fixture
def folder(tmp_path):
    """Three models that get better, in two folders, one that does not, and one that is none."""
    models = tmp_path / "models"
    (models / "deep").mkdir(parents=True)
    for name in ("a.onnx", "b.onnx", "deep/a.onnx"):
        onnx.save(nets.channels_last(), models / name)
    onnx.save(nets.settled(), models / "settled.onnx")
    (models / "none.onnx").write_bytes(b"no model")
    (models / "readme.txt").write_text("no model either")
    return models


def rows(output="out"):
    table = parquet.read_table(Path(output) / "results.parquet")
    return {row["model"]: row for row in table.to_pylist()}


def copies(folder, count):
    folder.mkdir()
    for i in range(count):
        onnx.save(nets.channels_last(), folder / f"{i:04}.onnx")


def test_a_folder_is_swept_and_what_fails_is_listed(folder):
    summary = sweep(folder, "out", verify=True, jobs=2)
    assert (summary.models, summary.improved, summary.unchanged, summary.reused) == (5, 3, 1, 0)
    assert [name for name, _ in summary.failures] == ["none.onnx"]
    table = rows()
    assert sorted(table) == ["a.onnx", "b.onnx", "deep/a.onnx", "none.onnx", "settled.onnx"]
    ok = table["deep/a.onnx"]
    assert (ok["status"], ok["verified"], ok["attempts"], ok["moves_before"]) == ("ok", True, 1, 4)
    assert ok["moves_after"] < ok["moves_before"] and 0 < ok["seconds"] < 600 and ok["peak_rss_bytes"] > 1 << 20
    assert Path(ok["output"]).read_bytes() == relayout.optimize((folder / "deep/a.onnx").read_bytes()).model
    bad = table["none.onnx"]
    assert bad["error"] == "ModelError" and "none.onnx" in bad["message"] and bad["moves_before"] is None
    assert not Path("out/models/none.onnx").exists()


def test_links_are_followed_to_the_files_that_they_lead_to(folder):
    """Caches of hubs have links to files whose names are digests."""
    os.mkdir("hub")
    os.symlink(folder / "a.onnx", "hub/a.onnx")
    os.symlink(folder / "gone.onnx", "hub/gone.onnx")
    summary = sweep("hub", "out")
    assert (summary.models, summary.improved) == (2, 1) and "gone.onnx" in summary.failures[0][1]
    assert rows()["a.onnx"]["moves_after"] < rows()["a.onnx"]["moves_before"]
    assert sweep("hub", "out").reused == 2
    onnx.save(nets.settled(), folder / "a.onnx")
    again = sweep("hub", "out")
    assert (again.unchanged, again.reused) == (1, 1)


def test_the_page_has_a_row_for_each_model_and_needs_no_network(folder):
    os.rename(folder / "b.onnx", folder / "<b> & co.onnx")
    summary = sweep(folder, "out")
    page = Path("out/results.html").read_text(encoding="utf-8")
    body = page[page.index("<tbody>") : page.index("</tbody>")]
    assert re.findall(r'<th scope="row">(.*?)</th>', body) == [
        "&lt;b&gt; &amp; co.onnx", "a.onnx", "deep/a.onnx", "none.onnx", "settled.onnx",
    ]  # fmt: skip
    assert body.count('class="failed"') == 1 and "ModelError: " in body and str(summary).replace(">", "&gt;") in page
    assert "http" not in page and "src=" not in page
    assert {len(re.findall("<t[hd]", line)) for line in body.splitlines() if line.startswith("<tr")} == {page.count('scope="col"')}


def test_what_is_done_is_not_done_again(folder, monkeypatch):
    first = sweep(folder, "out")
    before = Path("out/models/a.onnx").stat().st_mtime_ns
    monkeypatch.setattr("relayout.sweep._workers.LocalWorker.run", lambda *_: pytest.fail("nothing was left to do"))
    again = sweep(folder, "out")
    assert (again.reused, again.models, again.failures) == (5, 5, first.failures)
    assert Path("out/models/a.onnx").stat().st_mtime_ns == before
    assert (again.moves_after, again.bytes_after) == (first.moves_after, first.bytes_after)


def test_a_new_time_alone_is_no_change_and_new_bytes_are(folder):
    sweep(folder, "out")
    before = Path("out/models/a.onnx").stat().st_mtime_ns
    os.utime(folder / "a.onnx", (1, 1))
    onnx.save(nets.channels_last(16), folder / "b.onnx")
    onnx.save(nets.channels_last(), folder / "none.onnx")
    summary = sweep(folder, "out")
    assert (summary.reused, summary.failures) == (3, [])
    assert Path("out/models/a.onnx").stat().st_mtime_ns == before, "its digest was the same"
    assert Path("out/models/b.onnx").read_bytes() == relayout.optimize((folder / "b.onnx").read_bytes()).model
    assert sweep(folder, "out").reused == 5


def test_other_options_and_lost_results_are_done_again(folder):
    assert sweep(folder, "out").reused == 0
    assert sweep(folder, "out", target="nhwc").reused == 0
    assert rows()["a.onnx"]["target"] == "nhwc"
    os.remove("out/models/a.onnx")
    assert sweep(folder, "out", target="nhwc").reused == 4
    assert sweep(folder, "out", target="nhwc", again_failed=True).reused == 4
    described = Path(__file__).parents[2] / "crates/targets/src/functions/nhwc.toml"
    own = Path(shutil.copy(described, "own.toml"))
    assert sweep(folder, "out", target=own).reused == 0 and sweep(folder, "out", target=own).reused == 5
    own.write_text(own.read_text() + "\n# changed\n")
    assert sweep(folder, "out", target=own).reused == 0


def test_data_beside_a_model_belongs_to_it(tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    onnx.save(nets.channels_last(), models / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    data = (models / "m.data").read_bytes()
    (models / "m.data").unlink()
    [(name, message)] = sweep(models, "out").failures
    assert name == "m.onnx" and "missing" in message
    assert sweep(models, "out").reused == 1
    (models / "m.data").write_bytes(data)
    assert sweep(models, "out").failures == []
    (models / "m.data").write_bytes(bytes(len(data)))
    assert sweep(models, "out").reused == 0, "only the data changed"
    assert sweep(models, "out").reused == 1


def test_globs_files_and_urls(folder):
    assert sweep([folder / "a.onnx", folder / "b.onnx", folder / "a.onnx"], "files").models == 2
    assert sweep(f"{folder}/**/a.onnx", "glob").models == 2 and sorted(rows("glob")) == ["a.onnx", "deep/a.onnx"]
    assert sweep(f"file://{folder}", "url").models == 5
    with pytest.raises(relayout.OptionError, match="same name"):
        sweep([folder / "a.onnx", folder / "deep/a.onnx"], "two")
    with pytest.raises(relayout.MissingFileError, match="nowhere"):
        sweep("nowhere", "out")
    with pytest.raises(relayout.MissingFileError, match=r"no file \*\.onnx"):
        sweep(f"{folder}/*.pb", "out")
    with pytest.raises(relayout.FileError, match="gopher"):
        sweep("gopher://models", "out")
    assert sweep(folder.parent, folder.parent / "out").models == sweep(folder.parent, folder.parent / "out").reused


def test_models_in_a_file_system_that_is_not_local(folder):
    onnx.save(nets.channels_last(16), folder / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/hub", recursive=True)
    try:
        there, here = sweep("memory://hub", "there", verify=True), sweep(folder, "here")
        assert (there.models, there.improved, there.failures) == (6, 4, here.failures) or there.failures[0][0] == "none.onnx"
        for name in ("a.onnx", "deep/a.onnx", "m.onnx"):
            assert Path("there/models", name).read_bytes() == Path("here/models", name).read_bytes()
        assert sweep("memory://hub", "there", verify=True).reused == 6
        memory.pipe("/hub/m.data", bytes(memory.size("/hub/m.data")))
        assert sweep("memory://hub", "there", verify=True).reused == 5
        with pytest.raises(relayout.OptionError, match="memory"):
            sweep("memory://hub", "there", ray="local")
    finally:
        memory.rm("/hub", recursive=True)


def test_data_is_not_fetched_from_outside_of_a_folder(tmp_path):
    net = nets.channels_last()
    onnx.save(net, "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    bare = onnx.load("m.onnx", load_external_data=False)
    for tensor in bare.graph.initializer:
        next(entry for entry in tensor.external_data if entry.key == "location").value = "../secret"
    memory = fsspec.filesystem("memory")
    memory.pipe({"/hub/m.onnx": bare.SerializeToString(), "/secret": Path("m.data").read_bytes()})
    try:
        [(_, message)] = sweep("memory://hub", "out").failures
        assert "outside" in message
    finally:
        memory.rm("/hub", recursive=True)
        memory.rm("/secret")


@pytest.mark.parametrize(
    ("limits", "error"), [(Limits(seconds=0.01), "TimeLimit"), (Limits(rss_bytes=8_000_000), "MemoryLimit")]
)  # fmt: skip
def test_a_model_that_takes_too_much_is_ended(folder, limits, error):
    shutil.copy("tf_unet.onnx", folder)
    summary = sweep(folder / "tf_unet.onnx", "out", verify=True, limits=limits)
    [(_, message)] = summary.failures
    row = rows()["tf_unet.onnx"]
    assert (row["error"], row["attempts"]) == (error, 1), message
    assert not Path("out/models/tf_unet.onnx").exists()


def test_times_are_taken_side_by_side(folder):
    assert sweep(folder / "b.onnx", "out", time=True, dims={"N": "1..3"}).failures == []
    row = rows()["b.onnx"]
    assert 0 < row["before_ns"] < 1e9 and 0 < row["after_ns"] < 1e9
    # A result that is its model is no comparison.
    assert sweep(folder / "settled.onnx", "settled", time=True).failures == []
    [row] = rows("settled").values()
    assert (row["changed"], row["before_ns"], row["after_ns"]) == (False, None, None)
    with pytest.raises(relayout.OptionError, match="write_models"):
        sweep(folder, "out", time=True, write_models=False)


def test_tables_alone(folder):
    assert sweep(folder, "out", write_models=False).improved == 3
    assert not Path("out/models").exists() and rows()["a.onnx"]["output"] is None


def test_killed_processes_lose_nothing(tmp_path):
    copies(tmp_path / "models", 24)
    killed = {}

    def kill():
        """One process of a model, and one program that watches."""
        while len(killed) < 2:
            for watcher in psutil.Process().children():
                for child in watcher.children():
                    if "model" not in killed:
                        killed["model"] = child.pid
                        child.kill()
                    elif "watcher" not in killed:
                        killed["watcher"] = watcher.pid
                        watcher.kill()
            time.sleep(0.002)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    summary = sweep(tmp_path / "models", "out", verify=True, jobs=2, limits=Limits(retries=3))
    thread.join(1)
    assert set(killed) == {"model", "watcher"}
    assert (summary.models, summary.improved, summary.failures) == (24, 24, [])
    table = rows()
    assert len(table) == 24 and 1 <= sum(row["attempts"] - 1 for row in table.values()) <= 2, "answers that had come are kept"
    assert len(os.listdir("out/models")) == 24


def test_a_model_whose_process_is_always_killed_is_listed(tmp_path, monkeypatch):
    copies(tmp_path / "models", 2)
    die = 'import os, signal, relayout.sweep._watch as w\nw.work = lambda task: os.kill(os.getpid(), signal.SIGSEGV)\nw.main()\n'
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda words, **how: start([words[0], "-c", die], **how))
    summary = sweep(tmp_path / "models", "out", jobs=1)
    assert [message for _, message in summary.failures] == ["its process ended by SIGSEGV"] * 2
    assert {row["attempts"] for row in rows().values()} == {3}


def test_a_sweep_that_was_killed_goes_on(tmp_path):
    copies(tmp_path / "models", 30)
    words = [sys.executable, "-m", "relayout.sweep", "models", "-o", "out", "--verify", "-q", "--jobs", "2"]
    program = subprocess.Popen(words)
    while len(os.listdir("out/models") if os.path.isdir("out/models") else []) < 4:
        time.sleep(0.01)
    family = psutil.Process(program.pid).children(recursive=True)
    with pytest.raises(relayout.FileError, match="another sweep"):
        sweep("models", "out", verify=True)
    program.send_signal(signal.SIGKILL)
    program.wait()
    gone, alive = psutil.wait_procs(family, timeout=5)
    assert gone and not alive, "what it started ended with it"
    done = subprocess.run([*words[:-3], "--jobs", "2"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "30 models: 30 improved" in done.stdout and "100%" in done.stderr
    assert int(re.search(r"(\d+) had a result before", done.stdout).group(1)) >= 2
    assert len(rows()) == 30


def test_the_command_says_what_failed(folder):
    words = [sys.executable, "-m", "relayout.sweep", str(folder), "-o", "out"]
    done = subprocess.run([*words, "-q"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "") and "none.onnx" in done.stderr
    assert subprocess.run([*words, "--target", "tpu"], capture_output=True).returncode == 2
    assert b"NAME=SIZE" in subprocess.run([*words, "--dim", "N"], capture_output=True).stderr
    Path("full").write_text("a file")
    done = subprocess.run([*words[:-1], "full"], capture_output=True, text=True)
    assert done.returncode == 1 and "full" in done.stderr and "Traceback" not in done.stderr


def test_a_damaged_manifest_is_named(folder):
    os.mkdir("out")
    Path("out/results.sqlite").write_bytes(b"no database at all, by any means" * 200)
    with pytest.raises(relayout.FileError, match=r"results\.sqlite.*sweep anew"):
        sweep(folder, "out")
