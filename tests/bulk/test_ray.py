"""Bulk prediction on Ray: the same rows, also if a machine is lost."""

import os
import threading
import time
from pathlib import Path

import pytest

import saccade
from saccade.data.corpus import Corpus
from tests.bulk.conftest import ROWS, read_back

pytest.importorskip("ray", reason='needs pip install "saccade[ray]"')
pytestmark = pytest.mark.slow
COLUMNS = Corpus(columns={"source": "text"})


@pytest.fixture
def cluster(monkeypatch):
    """Two machines of one core each, as far as Ray knows; the driver's has none for the work."""
    import ray
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("PYTHONPATH", str(Path(saccade.__file__).parents[1]))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    head = {"num_cpus": 0, "object_store_memory": 100 << 20, "include_dashboard": False}
    made = Cluster(initialize_head=True, head_node_args=head)
    workers = [made.add_node(num_cpus=1, object_store_memory=100 << 20) for _ in range(2)]
    made.wait_for_nodes()
    ray.init(address=made.address, log_to_driver=False, logging_level="WARNING")
    yield made, workers
    ray.shutdown()
    made.shutdown()


def test_a_machine_is_lost_and_no_row(run, tables, tmp_path, cluster) -> None:
    from saccade.bulk import predict_files

    made, workers = cluster
    model, out, said = saccade.load(run), tmp_path / "out", []
    lost = threading.Event()

    def lose_one() -> None:
        while len(list(out.glob("part-*"))) < 4:
            time.sleep(0.02)
        made.remove_node(workers[0], allow_graceful=False)
        lost.set()

    killer = threading.Thread(target=lose_one)
    killer.start()
    done = predict_files(
        model, tables["parquet"], out, engine="ray", corpus=COLUMNS, block_rows=1, max_length=5, say=said.append
    )
    killer.join(timeout=60)
    assert lost.is_set()
    assert done.rows == 53
    rows = read_back(out)
    assert [row["id"] for row in rows] == list(range(53)), "no row is lost or doubled"
    alone = predict_files(
        model, tables["parquet"], tmp_path / "alone", corpus=COLUMNS, block_rows=1, max_length=5, say=said.append
    )
    assert alone == done
    assert read_back(tmp_path / "alone") == rows
    for name in sorted(os.listdir(tmp_path / "alone")):
        if name.startswith("part-"):
            assert (tmp_path / "alone" / name).read_bytes() == (out / name).read_bytes()


def test_bad_rows_are_named_as_without_ray(run, tmp_path, cluster) -> None:
    from saccade.bulk import predict_files

    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "ba su"}\n{"text": 1.5}\n' + f'{{"text": "{ROWS[0]["text"]}"}}\n' * 5)
    with pytest.raises(ValueError, match=r"rows.jsonl, line 2: the source is not text"):
        predict_files(saccade.load(run), [str(path)], tmp_path / "out", engine="ray", corpus=COLUMNS, block_rows=1)
