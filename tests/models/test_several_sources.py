"""Models with several sources: their equations, padding, missing sources, and whose position each weight is."""

import pytest
import torch

from saccade.encoders import Layout
from saccade.models import Multimodal, MultiSource
from saccade.search import beam
from tests.oracles.recurrent import run_lstm, sigmoid

N, TARGETS, D = 6, 11, 7
SMALL = {"source_vocab": 13, "target_vocab": TARGETS, "embedding_dim": 5, "hidden_dim": N}
TWO = {**SMALL, "other_sources": [{"vocab": 17}], "num_layers": 1}
THREE = {**SMALL, "other_sources": [{"vocab": 17}, {"dim": D}]}
PICTURE = {**SMALL, "other_sources": [{"dim": D}]}
LENGTHS = [6, 3, 1, 0], [0, 5, 2, 4], [3, 0, 2, 1]
TARGET = torch.tensor([[1, 4, 9], [3, 2, 5], [7, 1, 8], [2, 6, 10]])

TEXTS = {
    "each": lambda: MultiSource(**THREE, selection="local_p", half_width=1),
    "child_sum": lambda: MultiSource(**THREE, combination="child_sum", score="additive"),
    "all": lambda: MultiSource(**THREE, attention="all", selection="local_p", half_width=1),
    "hierarchical": lambda: MultiSource(**THREE, attention="hierarchical", combination="child_sum"),
    "at_once": lambda: MultiSource(**THREE, attention="hierarchical", input_feeding=False),
    "coverage": lambda: MultiSource(**THREE, score="coverage"),
    "none": lambda: MultiSource(**THREE, attention="none"),
    "other_encoders": lambda: MultiSource(**THREE, encoders=["embedding", "convolutional", "given"]),
}
PICTURES = {
    f"{vectors}_{place}{'_threads' * threads}": lambda vectors=vectors, place=place, threads=threads: Multimodal(
        **PICTURE, vectors=vectors, place=place, threads=threads
    )
    for vectors in ("global", "regions", "both")
    for place in ("head", "tail")
    for threads in (False, True)
}
MODELS = {**TEXTS, **PICTURES}


def built(make):
    torch.manual_seed(0)
    model = make().double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.4)
    return model


def batch(name: str):
    """Values and mask of each source; rows lack some of them."""
    torch.manual_seed(1)
    first, second, regions = (torch.arange(max(each)) < torch.tensor(each)[:, None] for each in LENGTHS)
    texts = [torch.randint(4, 13, first.shape), first, torch.randint(4, 17, second.shape), second]
    vectors = [torch.randn(*regions.shape, D, dtype=torch.float64), regions]
    return [*texts, *vectors] if name in TEXTS else [*texts[:2], *vectors]


def run(model, sources, target):
    decoded = model(*sources[:2], target, *sources[2:])
    encoded = model.encode(*sources)
    parts = [] if decoded.weights is None else encoded.layout.split(decoded.weights)
    return model.head.logits(decoded.features), parts


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_a_row_alone_is_as_in_the_batch(name):
    model, sources = built(MODELS[name]), batch(name)
    logits, parts = run(model, sources, TARGET)
    assert logits.shape == (4, 3, TARGETS)
    for row in range(4):
        lengths = [int(mask[row].sum()) for mask in sources[1::2]]
        alone = [each[row : row + 1, : lengths[number // 2]] for number, each in enumerate(sources)]
        own, own_parts = run(model, alone, TARGET[row : row + 1])
        torch.testing.assert_close(own[0], logits[row], atol=1e-10, rtol=0)
        assert len(parts) == (0 if name == "none" else len(lengths))
        for length, one, all_rows in zip(lengths, own_parts, parts, strict=False):
            torch.testing.assert_close(one[0], all_rows[row, :, :length], atol=1e-10, rtol=0)
            assert not all_rows[row, :, length:].any()


@torch.no_grad()
@pytest.mark.parametrize("name", MODELS)
def test_step_by_step_equals_teacher_forcing(name):
    model, sources = built(MODELS[name]), batch(name)
    decoded = model(*sources[:2], TARGET, *sources[2:])
    logits, state = model.head.logits(decoded.features), model.begin(model.encode(*sources))
    rows = torch.tensor([2, 0, 3, 1])
    state = model.select(state, rows)
    for t in range(3):
        step = model.step(TARGET[rows, t], state)
        state = step.state
        torch.testing.assert_close(step.logits, logits[rows, t], atol=1e-10, rtol=0)
        if decoded.weights is not None:
            torch.testing.assert_close(step.weights, decoded.weights[rows, t], atol=1e-10, rtol=0)
    found = beam(model, model.encode(*sources), size=2, max_length=4)
    assert [len(several) for several in found] == [1] * 4


@pytest.mark.parametrize("name", MODELS)
def test_every_parameter_learns_whatever_is_missing(name):
    model, sources = built(MODELS[name]).train(), batch(name)
    run(model, sources, TARGET)[0].square().sum().backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    assert all(p.grad.isfinite().all() for p in model.parameters())


def bias_of(layer):
    bias = layer.input_proj.bias.clone()
    bias[N : 2 * N] += layer.cells[0].bias
    return bias


@torch.no_grad()
@pytest.mark.parametrize("combination", ["basic", "child_sum"])
@pytest.mark.parametrize("attention", ["each", "all", "hierarchical"])
def test_the_equations_of_the_paper(combination, attention):
    """One row and one step at a time; the second row lacks the second source."""
    model = built(lambda: MultiSource(**TWO, combination=combination, attention=attention))
    sources = batch("each")[:4]
    lengths = [(6, 0), (3, 5), (1, 2), (0, 4)]
    logits, parts = run(model, sources, TARGET)
    decoder, bridge, first = model.decoder, model.decoder.bridge, model.decoder.stack.first
    joined = torch.cat([first.input_proj.weight, decoder.feed_proj.weight], dim=1)
    zeros = torch.zeros(N, dtype=torch.float64)
    for row, counts in enumerate(lengths):
        states, finals = [], []
        for encoder, tokens, count in zip(model.encoder.encoders, sources[::2], counts, strict=True):
            layer, inputs = encoder.layers[0], [encoder.embedding.weight[token] for token in tokens[row, :count]]
            pairs = run_lstm(inputs, layer.input_proj.weight, bias_of(layer), layer.cells[0].weight)
            states.append([h for h, _ in pairs])
            finals.append(pairs[-1] if pairs else (zeros, zeros))
        (h1, c1), (h2, c2) = finals
        if combination == "basic":
            h, c = torch.tanh(bridge.projs[0].weight @ torch.cat([h1, h2])), c1 + c2
        else:
            gates = bridge.gates[0].weight @ torch.cat([h1, h2]) + bridge.gates[0].bias
            W1, W2 = bridge.forget[0]
            b = bridge.forget_bias[0]
            i, o, u = sigmoid(gates[:N]), sigmoid(gates[N : 2 * N]), torch.tanh(gates[2 * N :])
            c = i * u + sigmoid(W1 @ h1 + b) * c1 + sigmoid(W2 @ h2 + b) * c2
            h = o * torch.tanh(c)
        fed = zeros
        for t, token in enumerate(TARGET[row]):
            inputs = torch.cat([decoder.embedding.weight[token], fed])
            ((h, c),) = run_lstm([inputs], joined, bias_of(first), first.cells[0].weight, h, c)
            weights, context = looked(decoder.attention, attention, h, states)
            fed = torch.tanh(decoder.combine_proj.weight @ torch.cat([context, h]))
            expected = decoder.head.proj.weight @ fed + decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)
            for count, part, own in zip(counts, parts, weights, strict=True):
                torch.testing.assert_close(part[row, t, :count], own)


def looked(part, attention, h, states):
    """The weights of each source and the context of one step."""
    empty = torch.zeros(0, dtype=torch.float64)

    def scored(score, own):
        return torch.stack([h @ score.query_proj.weight.T @ state for state in own]) if own else empty

    def read(weights, own):
        return sum((w * state for w, state in zip(weights, own, strict=True)), torch.zeros_like(h))

    if attention == "all":
        union = [state for own in states for state in own]
        weights = torch.softmax(scored(part.score, union), 0)
        return weights.split([len(own) for own in states]), read(weights, union)
    weights = [torch.softmax(scored(each.score, own), 0) for each, own in zip(part.attentions, states, strict=True)]
    contexts = [read(own, several) for own, several in zip(weights, states, strict=True)]
    if attention == "each":
        return weights, torch.cat(contexts)
    score = part.second.score
    keys = [proj.weight @ context for proj, context in zip(part.projs, contexts, strict=True)]
    energies = [
        score.hidden_proj.weight[0] @ torch.tanh(score.query_proj.weight @ h + score.key_proj.weight @ key)
        for key in keys
    ]
    present = [number for number, own in enumerate(states) if own]
    top = torch.softmax(torch.stack([energies[number] for number in present]), 0)
    shares = dict(zip(present, top, strict=True))
    weights = [own * shares.get(number, 0.0) for number, own in enumerate(weights)]
    return weights, sum(shares[number] * keys[number] for number in present)


@torch.no_grad()
@pytest.mark.parametrize("place", ["head", "tail"])
@pytest.mark.parametrize("threads", [False, True])
def test_vectors_are_read_as_words(place, threads):
    """The encoder against single sequences: the first row has a picture of three regions, the second none."""
    model = built(lambda: Multimodal(**PICTURE, num_layers=1, bidirectional=False, place=place, threads=threads))
    text, mask, vectors, regions = batch("both_head")
    encoded = model.encode(text, mask, vectors, regions)
    encoder, layer = model.encoder, model.encoder.network.layers[0]
    for row, (words, count) in enumerate(zip(LENGTHS[0], LENGTHS[2], strict=True)):
        said = [encoder.embedding.weight[token] for token in text[row, :words]]
        proj = encoder.vectors[0].proj
        seen = [proj.weight @ v + proj.bias for v in vectors[row, :count]]
        seen += [proj.weight @ vectors[row, :count].mean(0) + proj.bias] if count else []
        groups = [[each] for each in seen] or [[]] if threads else [seen]
        orders = [[*group, *said] if place == "head" else [*said, *group] for group in groups]
        pairs = [run_lstm(o, layer.input_proj.weight, bias_of(layer), layer.cells[0].weight) for o in orders]
        flat = torch.stack([h for each in pairs for h, _ in each])
        torch.testing.assert_close(encoded.states[row][encoded.mask[row]], flat)
        assert encoded.mask[row].tolist() == [True] * len(flat) + [False] * (encoded.mask.shape[1] - len(flat))
        for number in range(2):
            final = torch.stack([each[-1][number] for each in pairs]).mean(0)
            torch.testing.assert_close(encoded.summary[0][number][row], final)


@torch.no_grad()
@pytest.mark.parametrize("name", ["residual", "patches"])
def test_a_missing_picture_is_the_same_whether_the_batch_has_others_or_not(name):
    """Without any picture in a batch, all have one place, which is masked."""
    sizes = {**SMALL, "other_sources": [{"dim": 48}], "hidden_dim": 8, "encoders": ["recurrent", name]}
    model = built(lambda: MultiSource(**sizes))
    text, mask = torch.randint(4, 13, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    pictures = torch.randn(2, 16, 48, dtype=torch.float64)
    real = torch.tensor([[False] * 16, [True] * 16])
    both, parts = run(model, [text, mask, pictures, real], TARGET[:2])
    none, _ = run(model, [text, mask, torch.zeros_like(pictures[:, :1]), real[:, :1] & False], TARGET[:2])
    torch.testing.assert_close(both[0], none[0])
    assert not parts[1][0].any()
    torch.testing.assert_close(parts[1][1].sum(-1), torch.ones(3, dtype=torch.float64))


def test_the_weight_of_a_key_goes_to_the_positions_it_stands_for():
    masks = torch.tensor([[True, True, True]]), torch.tensor([[True, True, False]])
    owner, place = torch.tensor([[0, 0, 1, 3, 0]]), torch.tensor([[2, 0, 1, 0, 2]])
    words, regions = Layout(owner, place, masks).split(torch.tensor([[[0.1, 0.2, 0.3, 0.25, 0.15]]]))
    torch.testing.assert_close(words, torch.tensor([[[0.2, 0.0, 0.25]]]))
    torch.testing.assert_close(regions, torch.tensor([[[0.125, 0.425, 0.0]]]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: MultiSource(**TWO, attention="both"), "Unknown attention 'both'"),
        (lambda: MultiSource(**TWO, combination="sum"), "Unknown combination 'sum'"),
        (lambda: MultiSource(**TWO, combination="child_sum", cell="gru"), "child_sum.*lstm"),
        (lambda: MultiSource(**TWO, encoders=["recurrent"]), "one for each of 2 sources, got 1"),
        (lambda: MultiSource(**THREE, attention="all", encoders=["recurrent"] * 2 + ["given"]), "states of one size"),
        (lambda: MultiSource(**{**TWO, "other_sources": [{"vocab": 3, "dim": 2}]}), r"other_sources\[0\]"),
        (lambda: MultiSource(**{**TWO, "hidden_dim": 7}, bidirectional=True), "must be even, got 7"),
        (lambda: Multimodal(**TWO), "use multi_source"),
        (lambda: Multimodal(**PICTURE, vectors="all"), "Unknown vectors 'all'"),
        (lambda: Multimodal(**PICTURE, place="middle"), "Unknown place 'middle'"),
        (lambda: MultiSource(**TWO)(TARGET, TARGET > 0, TARGET), "2 sources to read"),
        (lambda: Multimodal(**PICTURE)(TARGET, TARGET > 0, TARGET), "1 pictures to read"),
    ],
)
def test_what_does_not_fit_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_long_vectors_of_a_picture_do_not_drown_the_text():
    """Annotations of backbones are many times as long as states of a text."""
    torch.manual_seed(5)
    model = MultiSource(
        source_vocab=13,
        target_vocab=11,
        other_sources=[{"dim": 7}],
        encoders=["recurrent", "projected"],
        embedding_dim=5,
        hidden_dim=6,
        num_layers=1,
    ).eval()
    source, target, picture = torch.randint(4, 13, (2, 5)), torch.randint(4, 11, (2, 3)), torch.randn(2, 4, 7)
    real = [torch.ones(2, length, dtype=torch.bool) for length in (5, 4)]
    found = [model(source, real[0], target, times * picture, real[1]).features for times in (1.0, 50.0)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-3)
