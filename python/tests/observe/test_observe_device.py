"""Times of a device that runs behind the host: events are recorded now and read later, without waiting."""

import stoker
from observing import Clock, Device, observer, read
from stoker.observe import device_marks


def on_device(tmp_path):
    clock = Clock()
    device = Device(clock)
    return clock, device, observer(tmp_path, clock=clock, events=device, device="cuda:7")


def no_cuda(monkeypatch):
    """The header and the memory readings ask CUDA; this machine may have none."""
    from stoker.observe import facts

    monkeypatch.setattr(facts, "provenance", lambda device: {"device": device})
    monkeypatch.setattr(facts.Memory, "read", lambda self: {"rss": 1, "allocated_peak": 5})


def step(clock, device, recorder, wait=1):
    """The host gives 10 + 20 + 4 ms of work in 1 + 1 + 1 ms."""
    recorder.mark("wait")
    clock.ms(wait)
    recorder.mark(None)
    with recorder.step():
        for phase, milliseconds in (("forward", 10), ("backward", 20), ("optimizer", 4)):
            with recorder.phase(phase):
                device.work(milliseconds)
                clock.ms(1)


def test_phases_carry_the_devices_times_beside_the_hosts(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    for _ in range(12):
        step(clock, device, recorder)
        device.reached = clock.now  # the device is far behind the host
    found = read(recorder)
    assert device.waited == 1, "only close() waits"
    assert found.on_device and len(found.rows) == 12
    row = found.rows[5]
    assert (row["forward_ns"], row["backward_ns"], row["optimizer_ns"]) == (1e6, 1e6, 1e6)
    assert (row["device_forward_ns"], row["device_backward_ns"], row["device_optimizer_ns"]) == (10e6, 20e6, 4e6)
    assert row["device_total_ns"] == 34e6 and row["device_gap_ns"] == 0
    assert row["wait_ns"] == 1e6 and row["device_wait_ns"] == 0, "the device has work while the host waits"


def test_a_device_without_work_waits_for_the_loader(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    for _ in range(12):
        step(clock, device, recorder, wait=100)
        device.reached = clock.now
    row = read(recorder).rows[5]
    assert row["wait_ns"] == 100e6 and row["device_wait_ns"] == 100e6 - 31e6


def test_rows_wait_for_their_events_and_keep_their_order(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    for _ in range(10):
        step(clock, device, recorder)
    assert len(recorder._marks.pending) == 10 and device.waited == 0
    device.reached = device.busy_until
    step(clock, device, recorder)
    assert len(recorder._marks.pending) == 1
    made = device.made
    for _ in range(5):
        device.reached = device.busy_until
        step(clock, device, recorder)
    assert device.made == made, "events are used again"
    assert [row["step"] for row in read(recorder).rows] == list(range(16))


def test_a_device_that_never_catches_up_costs_device_times_only(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    steps = device_marks.MOST_PENDING + 30
    for _ in range(steps):
        step(clock, device, recorder)
    assert len(recorder._marks.pending) == device_marks.MOST_PENDING
    found = read(recorder)
    assert len(found.rows) == steps and found.end["notes"] == {"device_unread": 30}
    assert found.rows[0]["device_total_ns"] is None and found.rows[0]["total_ns"] == 3e6
    assert found.rows[-1]["device_total_ns"] == 34e6


def test_no_event_is_recorded_while_a_graph_is_captured(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    step(clock, device, recorder)
    device.capture = True
    step(clock, device, recorder)
    device.capture = False
    for _ in range(2):
        step(clock, device, recorder)
    device.reached = device.busy_until
    rows = read(recorder).rows
    assert [row["device_total_ns"] is None for row in rows] == [False, True, False, False]
    assert rows[3]["device_forward_ns"] == 10e6


def test_a_device_that_fails_leaves_the_error_to_the_program(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    step(clock, device, recorder)

    def fails(event):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(device, "record", fails)
    step(clock, device, recorder)
    device.reached = device.busy_until
    rows = read(recorder).rows
    assert [row["device_total_ns"] for row in rows] == [34e6, None]


def test_a_summary_takes_the_devices_times(tmp_path, monkeypatch):
    no_cuda(monkeypatch)
    clock, device, recorder = on_device(tmp_path)
    for _ in range(60):
        step(clock, device, recorder, wait=3)
        device.reached = clock.now
    summary = read(recorder).summary()
    assert summary.clock == "device" and summary.step.median == 34 and summary.host_step.median == 6
    assert summary.share("forward") == 10 / 34 and summary.share("wait") == 0
    assert summary.memory["allocated_peak"] == 5
    assert isinstance(summary, stoker.observe.Summary)
