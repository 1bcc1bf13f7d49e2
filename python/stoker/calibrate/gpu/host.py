"""What the host needs: to dispatch operators of each kind, to notice the end of the device's work, to copy to it and back."""

import time

import torch

CALLS = 200


def _best_us(run, calls, synchronize, readings=5):
    """Microseconds to issue one call: the least of a few, since whatever disturbs a host only slows it."""
    found = []
    for _ in range(readings):
        synchronize()
        started = time.perf_counter()
        for _ in range(calls):
            run()
        found.append(1e6 * (time.perf_counter() - started) / calls)
        synchronize()
    return min(found)


def _dispatch(device):
    """(name, function, operators in it): kernels so small that the host is what takes the time."""
    x = torch.ones(16, device=device)
    w = torch.ones(16, 16, device=device, requires_grad=True)
    linear = torch.nn.Linear(16, 16).to(device)
    y = torch.ones(16, 16, device=device)
    parameters = [torch.nn.Parameter(torch.zeros(16, device=device)) for _ in range(10)]
    for p in parameters:
        p.grad = torch.ones_like(p)
    sgd = torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, foreach=True)

    def chain():
        z = w
        for _ in range(20):
            z = z * 1.5
        return z

    def backward():
        chain().sum().backward()

    return [("elementwise", lambda: x.mul_(1.0), 1), ("view", lambda: x.view(4, 4), 1),
            ("matmul", lambda: torch.mm(y, y), 1), ("module", lambda: linear(y), 1),
            ("autograd_forward", chain, 20), ("autograd_both", backward, 20),
            ("optimizer_foreach", sgd.step, 1), ("autocast_matmul", lambda: _autocast(device, y), 1)]


def _autocast(device, y):
    with torch.autocast(device, dtype=torch.bfloat16):
        return torch.mm(y, y)


def dispatch(case, device):
    synchronize = torch.cuda.synchronize if device == "cuda" else (lambda: None)
    for name, run, inside in _dispatch(device):
        if name == case["name"]:
            run()
            return {"us": _best_us(run, max(5, CALLS // inside), synchronize) / inside}
    raise KeyError(case["name"])


def synchronize(case, device):
    """From the end of an empty device's only kernel to the host that waits for it."""
    if device != "cuda":
        return {"status": "skipped", "note": "of a CUDA device only"}
    x = torch.ones(1, device=device)
    x.item()
    return {"us": _best_us(x.item if case["name"] == "item" else torch.cuda.synchronize, 100, torch.cuda.synchronize)}


def copy(case, device):
    """One copy at a time, host to device (h2d) or back, from memory that is pinned or pageable."""
    if device != "cuda":
        return {"status": "skipped", "note": "of a CUDA device only"}
    size, pinned, there = case["bytes"], case["name"].endswith("pinned"), case["name"].startswith("h2d")
    on_host = torch.zeros(size, dtype=torch.uint8, pin_memory=pinned)
    on_device = torch.zeros(size, dtype=torch.uint8, device=device)
    source, target = (on_host, on_device) if there else (on_device, on_host)

    def run():
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()

    run()
    calls = max(3, min(50, (256 << 20) // size))
    us = _best_us(run, calls, torch.cuda.synchronize)
    return {"us": us, "gb_per_s": size / us / 1e3}


def context(case, device):
    """Bytes in use on the device once a product and a convolution have run, without what the allocator holds: this process's context with
    its libraries, and whatever other processes have there."""
    if device != "cuda":
        return {"status": "skipped", "note": "of a CUDA device only"}
    x = torch.ones(64, 64, device=device)
    (x @ x).sum().item()
    torch.nn.functional.conv2d(torch.ones(1, 3, 8, 8, device=device), torch.ones(4, 3, 3, 3, device=device)).sum().item()
    del x
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    return {"bytes": total - free - torch.cuda.memory_reserved()}


RUNS = {"dispatch": dispatch, "synchronize": synchronize, "copy": copy, "context": context}


def measure(case, device):
    return RUNS[case["what"]](case, device)
