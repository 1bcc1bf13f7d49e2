"""The recorder's file: blocks, full disks, forks, crashes, ranks."""

import errno
import os
import subprocess
import sys
import textwrap
import warnings

import pytest
import torch

import stoker
from observing import Clock, lines, observer, read
from places import PYTHON
from stoker.observe import recorder as recording


def run(tmp_path, script, **environment):
    """Runs a script in tmp_path as a user would."""
    file = tmp_path / "script.py"
    file.write_text(textwrap.dedent(script))
    return subprocess.run([sys.executable, str(file)], cwd=tmp_path, capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PYTHON), **environment})


def test_rows_go_out_in_blocks(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    sizes = []
    for _ in range(recording.BLOCK_ROWS + 2):
        with recorder.step():
            clock.ms(1)
        sizes.append(os.path.getsize(recorder.path))
    assert sizes[0] > 0, "the first step is written at once, so that the header is there"
    changes = [at for at in range(1, len(sizes)) if sizes[at] != sizes[at - 1]]
    assert changes == [recording.BLOCK_ROWS]
    clock.ms(6000)
    with recorder.step():
        clock.ms(1)
    assert os.path.getsize(recorder.path) > sizes[-1], "five seconds are enough for a block"
    found = read(recorder)
    assert len(found.rows) == recording.BLOCK_ROWS + 3 and not found.damaged
    assert found.header == lines(recorder.path)[0]


def test_a_slow_disk_is_written_to_rarely_and_never_grows_the_ring(tmp_path, monkeypatch):
    monkeypatch.setattr(recording, "RING_ROWS", 300)
    clock = Clock()
    writes = []

    def slow(file, data):
        clock.ms(100)
        writes.append(clock.now)
        return os.write(file, data)

    recorder = observer(tmp_path, clock=clock, write=slow)
    for _ in range(20_000):
        with recorder.step():
            clock.ms(1)
    assert min(b - a for a, b in zip(writes, writes[1:])) >= 100 * 100e6, "at most 1 % of the time"
    found = read(recorder)
    assert found.end["lost"] > 0 and len(found.rows) + found.end["lost"] == 20_000


def test_a_write_stands_in_the_gap_that_it_made(tmp_path):
    clock = Clock()

    def slow(file, data):
        clock.ms(100)
        return os.write(file, data)

    recorder = observer(tmp_path, clock=clock, write=slow)
    for _ in range(3):
        with recorder.step():
            clock.ms(1)
    assert [row["own_ns"] for row in read(recorder).rows] == [0, 100e6, 0]


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_full_disk_stops_the_recording_once(tmp_path, capsys, code):
    left = [60_000]  # bytes that still fit

    def write(file, data):
        if left[0] == 0:
            raise OSError(code, os.strerror(code))
        done = os.write(file, data[:left[0]])
        left[0] -= done
        return done

    clock = Clock()
    recorder = observer(tmp_path, clock=clock, write=write)
    for _ in range(3000):
        with recorder.step():
            clock.ms(1)
    recorder.close()
    said = capsys.readouterr().err
    assert said.count("stoker:") == 1 and os.strerror(code) in said and "training goes on" in said
    found = stoker.read_observation(recorder.path)
    assert len(found.rows) == recorder._recorder.written > recording.BLOCK_ROWS
    assert not found.damaged and not found.truncated and found.end is None, "whole blocks are left"


@pytest.mark.skipif(sys.platform == "win32", reason="needs setrlimit")
def test_a_real_limit_on_the_files_size(tmp_path):
    done = run(tmp_path, """
        import resource, stoker
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        for _ in range(5000):
            with stoker.observe_step("run.obs.jsonl"):
                pass
        print("trained")
        """)
    assert done.returncode == 0 and done.stdout == "trained\n", done.stderr
    assert done.stderr.count("stoker:") == 1 and "cannot write to run.obs.jsonl" in done.stderr
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert found.rows and not found.damaged and not found.truncated


def test_a_file_that_is_there_is_kept(tmp_path):
    for _ in range(3):
        recorder = observer(tmp_path)
        with recorder.step():
            pass
        recorder.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.2.obs.jsonl", "run.3.obs.jsonl", "run.obs.jsonl"]


@pytest.mark.parametrize("name, labelled", [("run.obs.jsonl", "run.rank3.obs.jsonl"), ("a/b.jsonl", "a/b.rank3.jsonl"),
                                            ("plain", "plain.rank3"), (".jsonl", ".jsonl.rank3")])
def test_names_with_a_rank(name, labelled):
    assert recording.with_label(name, "rank3") == labelled


def test_each_rank_has_its_file(tmp_path, monkeypatch):
    for rank in (0, 1):
        monkeypatch.setenv("RANK", str(rank))
        monkeypatch.setenv("WORLD_SIZE", "2")
        recorder = observer(tmp_path)
        with recorder.step():
            pass
        found = read(recorder)
        assert (found.header["rank"], found.header["ranks"]) == (rank, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.rank0.obs.jsonl", "run.rank1.obs.jsonl"]


@pytest.mark.parametrize("environment", [{"RANK": "x", "WORLD_SIZE": "2"}, {"RANK": "5", "WORLD_SIZE": "2"}, {"RANK": "1"}])
def test_odd_ranks_are_none(monkeypatch, environment):
    from stoker.observe import facts

    for name in ("RANK", "WORLD_SIZE", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert facts.rank() == (0, 1)


def test_a_forked_child_writes_nothing(tmp_path):
    done = run(tmp_path, """
        import os, stoker
        observer = stoker.Observer("run.obs.jsonl", device="cpu")
        for step in range(3):
            with observer.step():
                pass
        with observer.step():
            child = os.fork()
        for step in range(300):
            with observer.step():
                pass
        if child:
            os.waitpid(child, 0)
        """)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["run.obs.jsonl"]
    assert [row["step"] for row in found.rows] == list(range(304)) and not found.damaged


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_workers_of_a_loader_write_nothing(tmp_path, method):
    done = run(tmp_path, f"""
        import torch, stoker
        from torch.utils.data import DataLoader, TensorDataset
        observer = stoker.Observer("run.obs.jsonl", device="cpu")  # at the top, where a spawned worker imports it too
        if __name__ == "__main__":
            loader = DataLoader(TensorDataset(torch.zeros(64, 3)), batch_size=4, num_workers=2,
                                multiprocessing_context="{method}")
            for batch in observer.batches(loader):
                with observer.step():
                    pass
        """)
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.glob("*.jsonl")] == ["run.obs.jsonl"]
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert len(found.rows) == 16 and found.end and found.rows[0]["samples"] == 4


def test_a_program_that_dies_loses_its_last_block_only(tmp_path):
    done = run(tmp_path, """
        import os, signal, stoker
        sizes = {0}
        while len(sizes) < 5:  # until four blocks are out
            with stoker.observe_step("run.obs.jsonl"):
                pass
            sizes.add(os.path.getsize("run.obs.jsonl"))
        for step in range(3):
            with stoker.observe_step("run.obs.jsonl"):
                pass
        os.kill(os.getpid(), signal.SIGKILL)
        """)
    assert done.returncode == -9
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert found.end is None and not found.damaged
    assert [row["step"] for row in found.rows] == list(range(len(found.rows)))
    assert len(found.blocks) == 4 and len(found.rows) == sum(block["rows"] for block in found.blocks)


def test_a_program_that_raises_keeps_everything(tmp_path):
    done = run(tmp_path, """
        import stoker, torch
        model = torch.nn.Linear(2, 2)
        observer = stoker.Observer("run.obs.jsonl").attach(model, torch.optim.SGD(model.parameters(), lr=1.0))
        model(torch.zeros(1, 2))
        raise torch.OutOfMemoryError("no memory")
        """)
    assert done.returncode == 1
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert [row["end"] for row in found.rows] == ["exception"] and found.end["steps"] == 1
    assert found.exceptions == [{"step": 0, "type": "OutOfMemoryError"}]


def test_a_loop_that_never_calls_it_leaves_a_file_with_no_steps(tmp_path):
    done = run(tmp_path, """
        import stoker
        observer = stoker.Observer("run.obs.jsonl")
        """)
    assert done.returncode == 0, done.stderr
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert found.rows == [] and found.end["steps"] == 0


def test_a_loop_without_pytorch(tmp_path):
    done = run(tmp_path, """
        import sys, stoker
        for step in range(20):
            with stoker.observe_step("run.obs.jsonl", batch=2) as step:
                with step.phase("forward"):
                    pass
        assert "torch" not in sys.modules
        """)
    assert done.returncode == 0, done.stderr
    found = stoker.read_observation(tmp_path / "run.obs.jsonl")
    assert len(found.rows) == 20 and found.header["provenance"]["torch"] is None
    assert found.header["provenance"]["device"] is None and found.header["timing"] == "host"


def test_memory_is_read_now_and_then(tmp_path):
    clock = Clock()
    recorder = observer(tmp_path, clock=clock)
    for _ in range(25):
        with recorder.step():
            clock.ms(100)
    ballast = torch.ones(16_000_000)
    with recorder.step():
        clock.ms(1000)
    found = read(recorder)
    assert [reading["step"] for reading in found.memory] == [0, 10, 20, 25], "once a second"
    assert found.memory[-1]["rss"] - found.memory[0]["rss"] > 0.9 * ballast.numel() * 4
    assert found.memory[-1]["rss_peak"] >= 0.99 * found.memory[-1]["rss"]


def test_nothing_warns(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recorder = observer(tmp_path)
        with recorder.step():
            pass
        recorder.close()


def test_ranks_of_torch_distributed(tmp_path):
    """Ranks that only torch.distributed knows, a model in DistributedDataParallel."""
    done = run(tmp_path, """
        import os, torch, stoker

        def main(rank):
            torch.distributed.init_process_group("gloo", init_method="file://" + __file__ + ".store", rank=rank, world_size=2)
            torch.set_num_threads(1)
            observer = stoker.Observer("run.obs.jsonl", device="cpu")
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 2))
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            observer.attach(model, optimizer)
            for _ in range(5):
                model(torch.randn(3, 4)).sum().backward()
                optimizer.step()
                optimizer.zero_grad()
            observer.close()
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()
            os._exit(0)  # C++ threads of PyTorch's process group abort about one ordinary end in thirty

        if __name__ == "__main__":
            torch.multiprocessing.spawn(main, nprocs=2)
        """, RANK="", WORLD_SIZE="")
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        found = stoker.read_observation(tmp_path / f"run.rank{rank}.obs.jsonl")
        assert (found.header["rank"], found.header["ranks"]) == (rank, 2) and len(found.rows) == 5
        assert all(row[f"{name}_ns"] > 0 for row in found.rows for name in ("forward", "loss", "backward", "optimizer"))
    assert len(list(tmp_path.glob("*.jsonl"))) == 2
