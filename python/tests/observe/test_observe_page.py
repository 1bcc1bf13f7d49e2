"""A recording as a document of blocks, which the binary makes a page of."""

import json

import stoker
from stoker.observe.page import document, write_page
from stoker.observe.reader import read_observation
from stoker.observe.summary import summarise


def recorded(path, steps=30, phases=()):
    now = [0]

    def clock():
        now[0] += 1_000_000  # a millisecond a look
        return now[0]

    observer = stoker.Observer(path, phases=phases, clock=clock)
    for _ in range(steps):
        with observer.phase("wait"):
            pass
        with observer.step(batch=8):
            for name in ("forward", "backward", *phases):
                with observer.phase(name):
                    pass
    observer.close()
    return read_observation(path)


def blocks_of(made):
    return [(section["title"], block["kind"]) for section in made["sections"] for block in section["blocks"]]


def test_phases_steps_and_ranks_are_shown_and_charts_share_their_order(tmp_path):
    found = [recorded(str(tmp_path / f"{rank}.obs.jsonl"), phases=["augment"]) for rank in (0, 1)]
    made = document(found, [summarise(one) for one in found])
    assert blocks_of(made) == [("Ranks", "table"), ("Where the time goes", "stack"), ("Where the time goes", "table"),
                               ("Step by step", "area"), ("Step by step", "lines")]
    stack, area = made["sections"][1]["blocks"][0], made["sections"][2]["blocks"][0]
    assert [row["label"] for row in stack["rows"]] == [series["label"] for series in area["series"]]
    assert [row["label"] for row in stack["rows"]][:3] == ["waiting for data", "forward", "backward"]
    assert len(area["at"]) == 30 and all(len(series["values"]) == 30 for series in area["series"])
    assert made["title"].endswith("and 1 more") and made["tiles"][0]["label"] == "Step, end to end"
    json.dumps(made)


def test_a_recording_without_steps_that_count_says_so(tmp_path):
    found = recorded(str(tmp_path / "none.obs.jsonl"), steps=0)
    made = document([found], [summarise(found)])
    assert made["headline"]["text"] == "No step can be judged" and made["sections"] == []


def test_many_steps_are_joined_so_that_a_page_stays_small(tmp_path):
    found = recorded(str(tmp_path / "long.obs.jsonl"), steps=2000)
    made = document([found], [summarise(found)])
    assert len(made["sections"][1]["blocks"][0]["at"]) <= 360 and len(json.dumps(made)) < 120_000


def test_the_binary_makes_a_page_of_it(with_binary, tmp_path):
    found = recorded(str(tmp_path / "<b>.obs.jsonl"))
    write_page(tmp_path / "page.html", [found], [summarise(found)], with_binary)
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!doctype html>") and "<b>.obs" not in page and "&lt;b&gt;.obs" in page
