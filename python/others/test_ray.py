"""Sweeps on a cluster of Ray: two nodes on this machine, each with one CPU. Workers and a whole node are killed in the middle."""

import threading
import time
from pathlib import Path

import nets
import onnx
import psutil
import pyarrow.parquet as parquet
import pytest
from ray.cluster_utils import Cluster

import relayout
from relayout.sweep import Limits, sweep

pytestmark = pytest.mark.filterwarnings("default")
COUNT = 30


@pytest.fixture
def cluster():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.second = cluster.add_node(num_cpus=1)
    yield cluster
    cluster.shutdown()


@pytest.fixture
def models(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    for i in range(COUNT):
        onnx.save(nets.channels_last(8 + i % 3), folder / f"{i:02}.onnx")
    return folder


def rows():
    table = parquet.read_table("out/results.parquet").to_pylist()
    assert len({row["model"] for row in table}) == len(table)
    return table


def when_some_are_done(count, act):
    """Calls a function once so many results are there, while the sweep goes on."""

    def wait():
        while len(list(Path("out/models").glob("*.onnx"))) < count:
            time.sleep(0.01)
        act()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def busy_workers():
    """Workers of Ray that have a model in work."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.name().startswith("ray::LocalWork") and any(c.children() for c in process.children()):
                found.append(process)
        except psutil.Error:
            pass
    return found


def kill_a_worker():
    while not (workers := busy_workers()):
        time.sleep(0.005)
    workers[0].kill()


def test_a_killed_worker_loses_nothing(cluster, models):
    killer = when_some_are_done(8, kill_a_worker)
    summary = sweep(models, "out", verify=True, ray=cluster.address)
    killer.join(1)
    assert not killer.is_alive(), "none was killed"
    assert (summary.models, summary.improved, summary.failures) == (COUNT, COUNT, [])
    table = rows()
    assert len(table) == COUNT and sum(row["attempts"] - 1 for row in table) == 1
    for row in table:
        assert Path(row["output"]).read_bytes() == relayout.optimize(Path(row["source"]).read_bytes()).model
    assert sweep(models, "out", verify=True, ray="127.0.0.1:1").reused == COUNT, "nothing is left, so no cluster is asked"


def test_a_lost_machine_loses_nothing(cluster, models):
    killer = when_some_are_done(5, lambda: cluster.remove_node(cluster.second, allow_graceful=False))
    summary = sweep(models, "out", verify=True, ray=cluster.address, limits=Limits(retries=3))
    killer.join(10)
    assert not killer.is_alive() and (summary.models, summary.failures) == (COUNT, [])
    assert len(rows()) == COUNT


def test_a_cluster_that_is_not_there_is_named(models):
    with pytest.raises(relayout.OptionError, match="127.0.0.1:1"):
        sweep(models, "out", ray="127.0.0.1:1")


def test_a_cluster_of_its_own(models):
    assert sweep(models / "00.onnx", "one", ray="local", jobs=1).improved == 1
    bad = models / "bad.onnx"
    bad.write_bytes(b"no model")
    assert sweep([bad, models / "01.onnx"], "two", ray="local", jobs=2).failures[0][0] == "bad.onnx"
