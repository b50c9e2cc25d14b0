"""Long inputs: the largest weights of each token are kept, and reach the page without ever holding all weights."""

import json
import subprocess
import sys

import pytest
import torch

import saccade
from saccade.interpretation.explorer.packing import unpack_top
from tests.interpretation.recording.pages import Page, tokeniser, transformers
from tests.interpretation.recording.test_generated_pages import gpt2

MEASURE = """
import json, resource, sys
import torch
import saccade
from tests.interpretation.recording.test_long_inputs import llama

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

tokens, page = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
model = llama()
ids = torch.randint(3, 97, (1, tokens))
with torch.no_grad():
    model(ids[:, :64])
    model(ids)
    alone = peak()
    with saccade.record(model, reduce=("top_k", 8)) as trace:
        model(ids)
trace.explore(page, inputs=ids)
print(json.dumps([alone, peak()]))
"""


def llama():
    """With little in it but attention."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=97,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1 << 16,
    )
    model = transformers.LlamaModel(config).eval()
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.25)
    return model


def test_kept_weights_are_on_the_page(tmp_path):
    tokenizer = tokeniser()
    model = llama()
    batch = tokenizer([" ".join(["the old cat sat"] * 29), "two dogs"], return_tensors="pt", padding=True)
    with torch.no_grad(), saccade.record(model, reduce=("top_k", 5)) as trace:
        model(**batch)
    name = trace.paths[1]
    for row, length in ((0, 116), (1, 2)):
        trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, row=row)
        page = Page(tmp_path / "page.html")
        assert page.notes == ["Only the 5 largest weights of each query were kept; the others count as zero."]
        found = page.item["maps"][1]
        assert found["top"] == 5
        expected = trace[name].weights[row, :, :length, :length]
        for head in range(4):
            block = page.block(found["block"] + head)
            values, places = unpack_top(block, page.data["levels"], length, 5)
            dense = torch.zeros(length, length).scatter_add_(-1, places, values)
            torch.testing.assert_close(dense, expected[head], rtol=0, atol=2e-4)


def test_generation_says_what_was_kept(tmp_path):
    tokenizer = tokeniser()
    model = gpt2()
    batch = tokenizer(["the old cat sat"], return_tensors="pt")
    with saccade.record(model, reduce=("top_k", 3)) as trace:
        written = model.generate(**batch, max_new_tokens=5, min_new_tokens=5)
    trace.explore(tmp_path / "page.html", tokenizer=tokenizer, inputs=batch, generated=written)
    page = Page(tmp_path / "page.html")
    assert page.notes[0].startswith("Only the 3 largest weights of each query were kept")
    found = page.item["maps"][1]
    assert found["top"] == 3  # and not all weights
    length = written.shape[1] - 1
    expected = trace.joined(trace.paths[1])[0]
    for head in range(3):
        values, places = unpack_top(page.block(found["block"] + head), page.data["levels"], length, 3)
        dense = torch.zeros(length, length).scatter_add_(-1, places, values)
        torch.testing.assert_close(dense, expected[head], rtol=0, atol=2e-4)


def measure(tokens, page):
    run = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tokens), str(page)], capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout.splitlines()[-1])


@pytest.mark.slow
def test_32768_tokens_need_less_than_two_gigabytes(tmp_path, chromium):
    page = tmp_path / "page.html"
    alone, recorded = measure(32_768, page)
    megabytes = recorded - alone
    print(f"{megabytes:.0f} MB more than without recording, page of {page.stat().st_size / 1e6:.1f} MB")
    assert megabytes < 2000
    assert page.stat().st_size < 25e6
    session = chromium.new_browser_cdp_session()

    def seconds() -> float:
        return sum(process["cpuTime"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"])

    tab = chromium.new_page()
    before = seconds()
    tab.goto(page.as_uri())
    tab.wait_for_selector("[data-ready=true]", timeout=60_000)
    opened = seconds() - before
    times = {}
    for name, act in {
        "arrow": lambda step: tab.keyboard.press("ArrowDown"),
        "zoom": lambda step: tab.keyboard.press("+"),
        "scroll": lambda step: tab.eval_on_selector(".frame", "(box, to) => { box.scrollTop = to; }", 1999 * step),
    }.items():
        before = seconds()
        for step in range(20):
            act(step)
        tab.wait_for_timeout(100)
        times[name] = (seconds() - before) / 20
    print(f"opens in {opened:.2f} s; " + ", ".join(f"{name} {1000 * each:.0f} ms" for name, each in times.items()))
    assert "row 19, column 0" in tab.inner_text("[role=status]")
    tab.close()
    assert opened < 3.0
    assert max(times.values()) < 0.1
