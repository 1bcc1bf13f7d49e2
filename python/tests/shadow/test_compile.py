"""Scripts that call torch.compile: the compiled step is taken, said, and may be overruled."""

import pytest
from test_scripts import captured, comparable, found, line_of, run

import training_scripts as scripts


def operators(doc) -> int:
    return sum(event[0] == "o" for event in doc["events"])


def in_graphs(doc) -> int:
    return sum(event[0] == "o" and isinstance(event[-1], dict) and "c" in event[-1] for event in doc["events"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return captured(tmp_path_factory.mktemp("whole"), scripts.COMPILED)


def test_a_compiled_model_is_captured_compiled(tmp_path, on_cuda, whole):
    row = next(r for r in whole["script"]["found"] if r["setting"] == "compile")
    assert (row["value"], row["words"], row["line"]) == (True, "torch.compile", line_of(scripts.COMPILED, "torch.compile"))
    assert whole["compiled"] == {"by": "inductor", "graphs": 2}
    names = whole["strings"]["modules"]
    assert "1.norm" in names and "2.up" in names


def test_it_is_passed_over_where_that_is_asked(tmp_path, on_cuda, whole):
    eager = captured(tmp_path, scripts.COMPILED, flags=("--no-compile",))
    assert found(eager)["compile"] is False and "compiled" not in eager
    plain = captured(tmp_path, scripts.COMPILED.replace("torch.compile(model)", "model"))
    assert comparable(eager) == comparable(plain)
    assert operators(eager) != operators(whole)


def test_compile_compiles_what_the_script_leaves_eager(tmp_path, on_cuda, whole):
    text = scripts.COMPILED.replace("torch.compile(model)", "model")
    doc = captured(tmp_path, text, flags=("--compile",))
    assert found(doc)["compile"] is True and doc["compiled"] == whole["compiled"]
    assert operators(doc) == operators(whole)


def test_a_part_compiled_in_place(tmp_path, on_cuda, whole):
    doc = captured(tmp_path, scripts.COMPILED.replace("WHOLE = torch.compile(model)", "model[1].compile(); WHOLE = model"))
    assert found(doc)["compile"] is True and doc["compiled"]["graphs"] == 2
    compiled = {doc["strings"]["modules"][e[2]] for e in doc["events"] if e[0] == "o" and isinstance(e[-1], dict) and "c" in e[-1]}
    assert compiled <= {"1", "1.norm", "1.up", "1.down"} and {"1.norm", "1.up"} <= compiled
    assert any("run eagerly" in note for note in doc["diagnostics"]["unfaithful"])


def test_a_compiled_function_that_calls_the_model(tmp_path, on_cuda, whole):
    text = scripts.COMPILED.replace("WHOLE = torch.compile(model)", "@torch.compile\ndef WHOLE(x):\n    return model(x)\n")
    doc = captured(tmp_path, text)
    assert doc["compiled"] == whole["compiled"] and len(doc["parameters"]) == len(whole["parameters"])


def test_what_cannot_be_followed_is_taken_eagerly_and_said(tmp_path, on_cuda):
    text = scripts.COMPILED.replace("torch.compile(model)", "torch.compile(model, backend='aot_eager')")
    doc = captured(tmp_path, text)
    assert found(doc)["compile"] is False and doc["compiled"] == {"by": "nothing", "graphs": 0}
    assert any("the step is the eager one" in note for note in doc["diagnostics"]["unfaithful"])
    text = scripts.COMPILED.replace("    def forward(self, x):", "    def forward(self, x):\n        torch._dynamo.graph_break()")
    code, doc, said = run(tmp_path, text.replace("torch.compile(model)", "torch.compile(model, fullgraph=True)"))
    assert code == 0, said
    assert found(doc)["compile"] is False and doc["compiled"] == {"by": "nothing", "graphs": 0}
    assert any("could not be followed" in note for note in doc["diagnostics"]["unfaithful"])


def test_what_rests_beside_a_compiled_step_is_counted_without_what_the_compiler_keeps(tmp_path, on_cuda):
    text = scripts.COMPILED.replace("for x, y in data:", """average = [p.detach().clone() for p in model.parameters()]
rests = torch.zeros(1000, 1000, device=device)
for x, y in data:""")
    doc = captured(tmp_path, text + "    with torch.no_grad():\n        [a.lerp_(p, 0.1) for a, p in zip(average, model.parameters())]\n")
    assert found(doc)["ema"] is True and found(doc)["resident"] == 4_000_000
    assert doc["training"] == {"ema": True}


ACCUMULATED = """
batch_size = 16
for step in range(8):
    for part in range(6):
        x, y = torch.randn(batch_size, 8).to(device), torch.randint(4, (batch_size,)).to(device)
        loss = nn.functional.cross_entropy(WHOLE(x), y) / 6
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_batch_that_no_loader_makes_is_captured_compiled_at_others(tmp_path, on_cuda, whole):
    head, _, _ = scripts.COMPILED.partition("data = DataLoader")
    doc = captured(tmp_path, head + ACCUMULATED)
    facts = found(doc)
    assert (facts["compile"], facts["accumulate"], facts["batch"]) == (True, 6, 16)
    assert doc["compiled"] == {"by": "inductor", "graphs": 2} and in_graphs(doc) == in_graphs(whole) > 0
    assert (doc["dimensions"][0]["degree"], doc["dimensions"][0]["default"]) == (1, 16)


def test_the_script_s_own_batch_alone_is_captured_compiled(tmp_path, on_cuda, whole):
    head, _, _ = scripts.COMPILED.partition("data = DataLoader")
    doc = captured(tmp_path, head + ACCUMULATED.replace("batch_size = 16", "batch_size = 16\nassert batch_size == 16"))
    assert doc["compiled"] == {"by": "inductor", "graphs": 2} and in_graphs(doc) == in_graphs(whole) > 0
    assert (doc["dimensions"][0]["degree"], found(doc)["accumulate"]) == (0, 6)
