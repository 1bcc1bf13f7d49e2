"""Helpers of the tests: captures in this process, and reads step files independently of the code that writes them."""

from stoker import front


def capture(what, **settings):
    """The document of a capture function or a (module, inputs) pair."""
    arguments = {"precision": "fp32", "mode": None, "name": None, "batch": None, "options": {}, "fixed": {}}
    return front.here(what, None, say=lambda text: None, **{**arguments, **settings})


def value(polynomial, sizes):
    """A polynomial of the step file at sizes {"batch": 4, ...} (units already divided out)."""
    if isinstance(polynomial, int):
        return polynomial
    total = 0
    for monomial, coefficient in polynomial.items():
        for factor in filter(None, monomial.split("*")):
            name, _, power = factor.partition("^")
            coefficient *= sizes[name] ** int(power or 1)
        total += coefficient
    return total


def operators(doc, name=None):
    """Operator events as dicts with names in place of numbers."""
    found = []
    for event in doc["events"]:
        if event[0] != "o":
            continue
        _, operator, module, link, inputs, outputs, attributes = event + [0, 0, [], [], {}][len(event) - 2:]
        row = {"name": doc["strings"]["operators"][operator], "module": doc["strings"]["modules"][module], "link": link,
               "inputs": _tensors(doc, inputs), "outputs": _tensors(doc, outputs), "attributes": attributes}
        if name is None or row["name"] == name:
            found.append(row)
    return found


def _tensors(doc, pairs):
    return [{"dtype": doc["types"][t][0], "shape": doc["types"][t][1], "order": (doc["types"][t] + [None])[2], "storage": s}
            for t, s in zip(pairs[::2], pairs[1::2])]


def shape(tensor, **sizes):
    return [value(s, sizes) for s in tensor["shape"]]


def peak_bytes(doc, **sizes):
    """The most bytes alive at once, without rounding."""
    size = [value(s[0], sizes) for s in doc["storages"]]
    live = sum(b for b, s in zip(size, doc["storages"]) if s[1] in ("parameter", "buffer", "input"))
    peak = live
    for event in doc["events"]:
        if event[0] == "a":
            live += size[event[1]]
        elif event[0] == "f":
            live -= size[event[1]]
        peak = max(peak, live)
    return peak


def check(doc):
    """Asserts what docs/reference/step-file.md promises about storages, events and ids."""
    born = {i for i, s in enumerate(doc["storages"]) if s[1] in ("parameter", "buffer", "input")}
    standing, dead, phases, links = set(born), set(), [], {}
    for event in doc["events"]:
        if event[0] == "p":
            phases.append(event[1])
        elif event[0] == "a":
            assert event[1] not in standing and event[1] not in dead
            standing.add(event[1])
        elif event[0] == "f":
            assert event[1] in standing and doc["storages"][event[1]][1] == "transient"
            standing.remove(event[1])
            dead.add(event[1])
        elif event[0] == "o":
            for pairs in event[4:6]:
                assert all(s in standing for s in pairs[1::2])
                assert all(0 <= t < len(doc["types"]) for t in pairs[::2])
    assert standing | dead == set(range(len(doc["storages"]))), "every storage is born"
    assert all(doc["storages"][s][1] != "transient" for s in standing)
    assert phases == [p for p in ("load", "forward", "loss", "backward", "end") if p in phases]
    for row in operators(doc):
        links.setdefault(row["link"], []).append(row)
    assert all(len(rows) > 1 or rows[0]["name"] == "stoker::attention" for link, rows in links.items() if link)
    return doc
