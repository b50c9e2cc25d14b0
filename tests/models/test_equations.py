"""Each recurrent model against its paper's equations, one row and one step at a time."""

import torch

from saccade.models import Cho, Kim, Luong, RNNSearch, Sutskever
from tests.models.family import SMALL
from tests.oracles.recurrent import maxout, run_gru_before, run_lstm, sigmoid
from tests.oracles.structures import tree_indicator, trees

MASK = torch.arange(6) < torch.tensor([[6], [3]])


def prepare(model):
    torch.manual_seed(0)
    model = model.double().eval()
    for parameter in model.parameters():
        parameter.data.normal_(0.0, 0.4)
    source, target = torch.randint(4, 13, (2, 6)), torch.randint(1, 11, (2, 5))
    with torch.no_grad():
        decoded = model(source, MASK, target)
        logits = model.head.logits(decoded.features)
    return model, source, target, logits, decoded.weights


def read(embedding, tokens):
    return [embedding.weight[token] for token in tokens]


@torch.no_grad()
def test_cho():
    model, source, target, logits, _ = prepare(Cho(**SMALL, maxout_dim=7))
    encoder, decoder = model.encoder.layers[0], model.decoder
    n = 8
    W_r, W_z, W = decoder.input_proj.weight.split(n)
    b_r, b_z, b = decoder.input_proj.bias.split(n)
    C_r, C_z, C = decoder.context_gates.weight.split(n)
    U_r, U_z, U = decoder.cell.weight.split(n)
    for row, length in enumerate([6, 3]):
        inputs = read(model.encoder.embedding, source[row, :length])
        h = run_gru_before(inputs, encoder.input_proj.weight, encoder.input_proj.bias, encoder.cells[0].weight)[-1]
        c = torch.tanh(decoder.context_proj.weight @ h + decoder.context_proj.bias)
        g = torch.tanh(decoder.initial_proj.weight @ c + decoder.initial_proj.bias)
        for t, e in enumerate(read(decoder.embedding, target[row])):
            r = sigmoid(W_r @ e + b_r + U_r @ g + C_r @ c)
            z = sigmoid(W_z @ e + b_z + U_z @ g + C_z @ c)
            candidate = torch.tanh(W @ e + b + r * (U @ g + C @ c + decoder.cell.bias))
            g = z * g + (1 - z) * candidate
            s = maxout(decoder.readout.proj.weight @ torch.cat([g, e, c]) + decoder.readout.proj.bias)
            expected = decoder.head.proj.weight @ s + decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)


@torch.no_grad()
def test_sutskever_reads_in_reverse_and_hands_over_every_layer():
    model, source, target, logits, _ = prepare(Sutskever(**SMALL, num_layers=2))
    n = 8

    def run(layer, inputs, start=(None, None)):
        bias = layer.input_proj.bias.clone()
        bias[n : 2 * n] += layer.cells[0].bias
        return run_lstm(inputs, layer.input_proj.weight, bias, layer.cells[0].weight, *start)

    for row, length in enumerate([6, 3]):
        states = read(model.encoder.embedding, source[row, :length].flip(0))
        outputs = read(model.decoder.embedding, target[row])
        for encoder_layer, decoder_layer in zip(model.encoder.layers, model.decoder.stack.layers, strict=True):
            pairs = run(encoder_layer, states)
            states = [h for h, _ in pairs]
            outputs = [h for h, _ in run(decoder_layer, outputs, pairs[-1])]
        for t, h in enumerate(outputs):
            expected = model.decoder.head.proj.weight @ h + model.decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)


@torch.no_grad()
def test_rnnsearch():
    model, source, target, logits, weights = prepare(RNNSearch(**SMALL, alignment_dim=7, maxout_dim=3))
    layer, decoder, score = model.encoder.layers[0], model.decoder, model.decoder.attention.score
    n = 8
    W_r, W_z, W = decoder.input_proj.weight.split(n)
    b_r, b_z, b = decoder.input_proj.bias.split(n)
    C_r, C_z, C = decoder.context_proj.weight.split(n)
    U_r, U_z, U = decoder.cell.weight.split(n)
    W_a, U_a, v_a = score.query_proj.weight, score.key_proj.weight, score.hidden_proj.weight[0]
    forward, backward = zip(layer.input_proj.weight.chunk(2), layer.input_proj.bias.chunk(2), strict=True)
    for row, length in enumerate([6, 3]):
        inputs = read(model.encoder.embedding, source[row, :length])
        ahead = run_gru_before(inputs, *forward, layer.cells[0].weight)
        behind = run_gru_before(inputs[::-1], *backward, layer.cells[1].weight)[::-1]
        annotations = [torch.cat(pair) for pair in zip(ahead, behind, strict=True)]
        s = torch.tanh(decoder.bridge.proj.weight @ behind[0] + decoder.bridge.proj.bias)
        for t, e in enumerate(read(decoder.embedding, target[row])):
            energies = torch.stack([v_a @ torch.tanh(W_a @ s + U_a @ h) for h in annotations])
            alpha = torch.exp(energies) / torch.exp(energies).sum()
            c = sum(a * h for a, h in zip(alpha, annotations, strict=True))
            readout = maxout(decoder.readout.proj.weight @ torch.cat([s, e, c]) + decoder.readout.proj.bias)
            r = sigmoid(W_r @ e + b_r + U_r @ s + C_r @ c)
            z = 1 - sigmoid(W_z @ e + b_z + U_z @ s + C_z @ c)  # the paper's z is 1 less ours
            candidate = torch.tanh(W @ e + b + U @ (r * s) + C @ c)
            s = (1 - z) * s + z * candidate
            expected = decoder.head.proj.weight @ readout + decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)
            torch.testing.assert_close(weights[row, t, :length], alpha)


@torch.no_grad()
def test_luong_general_with_input_feeding():
    model, source, target, logits, weights = prepare(Luong(**SMALL, num_layers=1, score="general"))
    layer, decoder = model.encoder.layers[0], model.decoder
    first = decoder.stack.first
    n = 8

    def bias_of(layer):
        bias = layer.input_proj.bias.clone()
        bias[n : 2 * n] += layer.cells[0].bias
        return bias

    W_a = decoder.attention.score.query_proj.weight.T
    joined = torch.cat([first.input_proj.weight, decoder.feed_proj.weight], dim=1)
    for row, length in enumerate([6, 3]):
        inputs = read(model.encoder.embedding, source[row, :length])
        pairs = run_lstm(inputs, layer.input_proj.weight, bias_of(layer), layer.cells[0].weight)
        (h, c), states = pairs[-1], [h for h, _ in pairs]
        fed = torch.zeros(n, dtype=torch.float64)
        for t, e in enumerate(read(decoder.embedding, target[row])):
            step = run_lstm([torch.cat([e, fed])], joined, bias_of(first), first.cells[0].weight, h, c)
            h, c = step[0]
            a = torch.softmax(torch.stack([h @ W_a @ state for state in states]), dim=0)
            context = sum(w * state for w, state in zip(a, states, strict=True))
            fed = torch.tanh(decoder.combine_proj.weight @ torch.cat([context, h]))
            expected = decoder.head.proj.weight @ fed + decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)
            torch.testing.assert_close(weights[row, t, :length], a)


@torch.no_grad()
def test_kim_reads_the_soft_parent_in_trees_below_the_first_token():
    model, source, target, logits, weights = prepare(Kim(**SMALL, parser_dim=7))
    encoder, decoder = model.encoder, model.decoder
    parser, score, first = encoder.network.layers[0], encoder.attention.score, decoder.stack.first
    W_1, W_2, b, s = score.key_proj.weight, score.query_proj.weight, score.key_proj.bias, score.hidden_proj.weight[0]

    def biases(layer, size):
        ahead = [part.clone() for part in layer.input_proj.bias.chunk(len(layer.cells))]
        for bias, cell in zip(ahead, layer.cells, strict=True):
            bias[size : 2 * size] += cell.bias
        return ahead

    W_a = decoder.attention.score.query_proj.weight.T
    joined = torch.cat([first.input_proj.weight, decoder.feed_proj.weight], dim=1)
    for row, length in enumerate([6, 3]):
        x = read(encoder.embedding, source[row, :length])
        halves = zip(parser.input_proj.weight.chunk(2), biases(parser, 7), strict=True)
        forward, backward = ((W, bias, cell.weight) for (W, bias), cell in zip(halves, parser.cells, strict=True))
        ahead = [h for h, _ in run_lstm(x, *forward)]
        behind = [h for h, _ in run_lstm(x[::-1], *backward)][::-1]
        h = [torch.cat(pair) for pair in zip(ahead, behind, strict=True)]
        theta = torch.stack([torch.stack([torch.tanh(s @ torch.tanh(W_1 @ i + W_2 @ j + b)) for i in h]) for j in h])
        heads = trees(length, projective=True, single_root=True)
        z = tree_indicator(heads[heads[:, 0] == 0])
        marginals = torch.einsum("t,tji->ji", torch.softmax((z * theta).sum((1, 2)), 0), z)
        states = [torch.cat([x[j], sum(marginals[j, i] * x[i] for i in range(length))]) for j in range(length)]
        h, c = decoder.bridge.states[0]
        fed = torch.zeros(8, dtype=torch.float64)
        for t, e in enumerate(read(decoder.embedding, target[row])):
            ((h, c),) = run_lstm([torch.cat([e, fed])], joined, biases(first, 8)[0], first.cells[0].weight, h, c)
            a = torch.softmax(torch.stack([h @ W_a @ state for state in states]), dim=0)
            context = sum(w * state for w, state in zip(a, states, strict=True))
            fed = torch.tanh(decoder.combine_proj.weight @ torch.cat([context, h]))
            expected = decoder.head.proj.weight @ fed + decoder.head.proj.bias
            torch.testing.assert_close(logits[row, t], expected)
            torch.testing.assert_close(weights[row, t, :length], a)
