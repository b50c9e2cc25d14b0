"""Models that copy words of the source: the paper's equations as loops, and one protocol for all of them."""

import math
from functools import partial

import pytest
import torch

from saccade import masks
from saccade.decoders.heads import LexiconHead
from saccade.models import ConvolutionalAttention, CopyNet, Luong, PointerGenerator, RNNSearch, Transformer
from saccade.search import beam, greedy

VOCAB, EXTRA, KEYS, STEPS = 11, 3, 6, 5
SMALL = {"source_vocab": 13, "target_vocab": VOCAB, "embedding_dim": 5, "hidden_dim": 8}
CONVOLVED = {
    "source_vocab": VOCAB,
    "target_vocab": VOCAB,
    "embedding_dim": 5,
    "first_channels": 4,
    "channels": 3,
    "widths": (3, 4, 2),
    "dropout": 0.0,
}
TRANSFORMER = {
    "source_vocab": 13,
    "target_vocab": VOCAB,
    "dim": 6,
    "num_heads": 2,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "feed_forward_dim": 7,
    "dropout": 0.0,
}
LENGTHS = torch.tensor([6, 3, 1, 0])
MASK = torch.arange(KEYS) < LENGTHS[:, None]

FAMILY = {
    "copynet": lambda: CopyNet(**SMALL, alignment_dim=7),
    "copynet_paper": lambda: CopyNet(**SMALL, readout=False, score="coverage", selection="sparsemax"),
    "copynet_without_selective_read": lambda: CopyNet(**SMALL, selective_read=False),
    "pointer_generator": lambda: PointerGenerator(**SMALL),
    "pointer_generator_sparse": lambda: PointerGenerator(**SMALL, score="general", selection="sparsemax"),
    "rnnsearch_gate": lambda: RNNSearch(**SMALL, head="pointer_generator"),
    "rnnsearch_shared": lambda: RNNSearch(**SMALL, head="copynet", encoder="convolutional"),
    "luong_gate": lambda: Luong(**SMALL, head="pointer_generator"),
    "convolutional": lambda: ConvolutionalAttention(**CONVOLVED),
    "transformer_gate": lambda: Transformer(**TRANSFORMER, head="pointer_generator"),
    "transformer_shared": lambda: Transformer(
        **TRANSFORMER, head="copynet", tied="none", norm="post", positions="alibi", cross_selection="sparsemax"
    ),
    "luong_shared_parallel": lambda: Luong(**SMALL, head="copynet", input_feeding=False, score="location"),
}


def build(name, dtype=torch.float64):
    torch.manual_seed(0)
    model = FAMILY[name]().to(dtype).eval()
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def batch():
    torch.manual_seed(1)
    source = torch.randint(4, VOCAB, (4, KEYS))
    words = torch.randint(4, VOCAB + EXTRA, (4, KEYS)).masked_fill(~MASK, 0)
    words[0, 3] = words[0, 1] = VOCAB + 2  # twice in the source
    target = torch.cat([torch.full((4, 1), 1), torch.randint(2, VOCAB, (4, STEPS - 1))], dim=1)
    target[0, 1], target[1, 2] = VOCAB + 2, words[1, 0]
    return source, target, words


@pytest.mark.parametrize("name", FAMILY)
def test_step_by_step_equals_teacher_forcing(name):
    model = build(name)
    source, target, words = batch()
    with torch.no_grad():
        decoded = model(source, MASK, target, words=words)
        logits = model.head.logits(decoded.features)
        torch.testing.assert_close(logits.exp().sum(-1), torch.ones(4, STEPS, dtype=torch.double))
        state = model.begin(model.encode(source, MASK, words=words))
        for t in range(STEPS):
            step = model.step(target[:, t], state)
            state = step.state
            torch.testing.assert_close(step.logits, logits[:, t], atol=1e-10, rtol=0)
            torch.testing.assert_close(step.weights, decoded.weights[:, t], atol=1e-10, rtol=0)
    assert logits.shape == (4, STEPS, VOCAB + KEYS)


@pytest.mark.parametrize("name", FAMILY)
def test_a_row_alone_is_as_in_the_batch(name):
    model = build(name)
    source, target, words = batch()
    all_rows = model.head.logits(model(source, MASK, target, words=words).features)
    for row, length in enumerate(LENGTHS.tolist()):
        own = slice(row, row + 1)
        alone = model(source[own, :length], MASK[own, :length], target[own], words=words[own, :length])
        found = model.head.logits(alone.features)[0]
        torch.testing.assert_close(found, all_rows[row, :, : VOCAB + length], atol=1e-10, rtol=0)
        assert (all_rows[row, :, VOCAB + max(length, EXTRA) :] == -math.inf).all()


@pytest.mark.parametrize("name", FAMILY)
def test_select_and_reorder(name):
    model = build(name)
    source, target, words = batch()
    rows = torch.tensor([2, 0, 0, 1])
    with torch.no_grad():
        state = model.begin(model.encode(source, MASK, words=words))
        for t in range(2):
            state = model.step(target[:, t], state).state
        chosen = model.step(target[rows, 2], model.select(state, rows))
        full = model(source[rows], MASK[rows], target[rows], words=words[rows])
        torch.testing.assert_close(chosen.logits, model.head.logits(full.features)[:, 2], atol=1e-10, rtol=0)
        state = model.select(model.begin(model.encode(source, MASK, words=words)), torch.tensor([0, 0, 1, 1]))
        for t in range(2):
            state = model.step(target[:, t], state).state
        swap = torch.tensor([1, 0, 3, 3])
        one, other = model.reorder(state, swap), model.select(state, swap)
        torch.testing.assert_close(model.step(target[:, 2], one).logits, model.step(target[:, 2], other).logits)


@pytest.mark.parametrize("name", FAMILY)
def test_every_parameter_learns_and_gradients_are_finite(name):
    model = build(name).train()
    source, target, words = batch()
    decoded = model(source, MASK, target, words=words)
    wanted = words[:, :STEPS].clamp(min=2)
    real = MASK[:, :STEPS]
    model.head.loss(decoded.features[real], wanted[real]).total.backward()
    assert [n for n, p in model.named_parameters() if p.grad is None] == []
    assert all(torch.isfinite(p.grad).all() for p in model.parameters())
    nothing = model(source, MASK, target[:, :0], words=words).features
    assert getattr(nothing, "features", nothing).shape[:2] == (4, 0)


@pytest.mark.parametrize("name", ["copynet", "pointer_generator", "rnnsearch_shared", "transformer_gate"])
def test_searches_agree_and_find_words_outside_the_vocabulary(name):
    model = build(name, torch.float32)
    source, _, words = batch()
    encoded = model.encode(source[:3], MASK[:3], words=words[:3])
    one, several = greedy(model, encoded, max_length=4), beam(model, encoded, size=1, max_length=4)
    assert [h.tokens for h in one] == [h[0].tokens for h in several]
    forced = beam(model, encoded, size=3, max_length=4, prefix=[VOCAB + 2])[0][0]
    assert forced.tokens[0] == VOCAB + 2
    assert math.isfinite(forced.log_prob)


def test_copynet_is_that_of_the_equations():
    """Equations 5 to 9 of the paper, position by position and word by word."""
    model = build("copynet_paper")
    source, target, words = batch()
    decoder, head = model.decoder, model.decoder.head
    found = head.logits(model(source, MASK, target, words=words).features)
    encoded = model.encode(source, MASK, words=words)
    memory = decoder.attention.prepare(encoded.states, mask=MASK.unsqueeze(1))
    way = head.ways["copy"]
    for row in range(2):
        length = int(LENGTHS[row])
        hidden, attention = decoder.bridge(encoded.summary)[0][0][row : row + 1], None
        states, said = memory.values[row, :length], words[row, :length].tolist()
        copied_from = [0.0] * length
        for t in range(STEPS):
            token = int(target[row, t])
            reading = decoder.attention.read(hidden.unsqueeze(1), memory.index(torch.tensor([row])), state=attention)
            attention = reading.state
            same = [j for j in range(length) if said[j] == token] if t else []
            total = sum(copied_from[j] for j in same)
            selected = sum((copied_from[j] / total * states[j] for j in same), torch.zeros_like(states[0]))
            embedded = decoder.embedding(torch.tensor([token if token < VOCAB else 3]))
            gates = decoder.input_proj(embedded) + decoder.context_proj(reading.context[:, 0])
            hidden = decoder.cell.step(gates + decoder.selected_proj(selected), (hidden,))[0]
            generate = [math.exp(x) for x in head.generate.logits(hidden[0]).tolist()]
            copy = [math.exp((torch.tanh(way.key_proj(states[j])) @ hidden[0]).item()) for j in range(length)]
            z = sum(generate) + sum(copy)
            copied_from = [x / z for x in copy]
            for word in range(VOCAB + EXTRA):
                p = (generate[word] if word < VOCAB else 0.0) / z
                p += sum(copied_from[j] for j in range(length) if said[j] == word)
                assert math.exp(found[row, t, word].item()) == pytest.approx(p, abs=1e-10)


def test_pointer_generator_is_that_of_the_equations():
    """Equations 1 to 12 of the paper, with loops over words and positions."""
    model = build("pointer_generator")
    source, target, words = batch()
    decoder, head = model.decoder, model.decoder.head
    decoded = model(source, MASK, target, words=words)
    found = head.logits(decoded.features)
    encoded = model.encode(source, MASK, words=words)
    row, length, score = 0, 6, decoder.attention.score
    states, said = encoded.states[row, :length], words[row, :length].tolist()
    state = [tuple(each[row : row + 1] for each in layer) for layer in decoder.bridge(encoded.summary)]
    context, coverage = torch.zeros(1, states.shape[1], dtype=torch.double), [0.0] * length
    missed = 0.0
    for t in range(STEPS):
        token = int(target[row, t])
        embedded = decoder.embedding(torch.tensor([token if token < VOCAB else 3]))
        inputs = decoder.stack.first.input_proj(embedded) + decoder.feed_proj(context)
        hidden, state = decoder.stack.step(inputs, tuple(state))
        seen = torch.tensor(coverage, dtype=torch.double).unsqueeze(1)
        inner = score.key_proj(states) + score.query_proj(hidden) + score.feature_projs[0](seen)
        weights = score.hidden_proj(torch.tanh(inner)).squeeze(1).softmax(0)
        missed += sum(min(a, c) for a, c in zip(weights.tolist(), coverage, strict=True))
        coverage = [c + a for c, a in zip(coverage, weights.tolist(), strict=True)]
        context = (weights @ states).unsqueeze(0)
        vocab = head.generate.logits(decoder.combine_proj(torch.cat([context, hidden], dim=-1)))[0].softmax(0)
        gate = torch.sigmoid(head.blend.proj(torch.cat([context, hidden, embedded], dim=-1))).item()
        for word in range(VOCAB + EXTRA):
            p = gate * float(vocab[word]) if word < VOCAB else 0.0
            p += (1 - gate) * sum(float(weights[j]) for j in range(length) if said[j] == word)
            assert math.exp(found[row, t, word].item()) == pytest.approx(p, abs=1e-10)
    steps = torch.zeros(4, STEPS, dtype=torch.bool)
    steps[row] = True
    assert float(model.penalty(decoded, target, steps, lambda: None)) == pytest.approx(missed)


def test_a_transformer_copies_by_the_equations():
    """The last layer's attention to the source, head by head, and the gate of See et al., word by word."""
    model = build("transformer_gate")
    source, target, words = batch()
    decoder, head = model.decoder, model.decoder.head
    assert head.generate.proj.weight is decoder.embedding.weight
    decoded = model(source, MASK, target, words=words)
    found = head.logits(decoded.features)
    states = model.encode(source, MASK, words=words).states
    embedded = decoder.embedding(target.masked_fill(target >= VOCAB, 3))
    below, last = decoder.layers
    inputs, _ = below(embedded, below.cross_attention.prepare(states, mask=MASK.unsqueeze(1)))
    asking = last.around_self(inputs, lambda x: last.self_attention(x, mask=masks.causal()).context)
    across = last.cross_attention
    for row in range(3):
        length, said = int(LENGTHS[row]), words[row].tolist()
        for t in range(STEPS):
            query = across.query_proj(last.around_cross.norm(asking[row, t]))
            keys, values = across.key_proj(states[row, :length]), across.value_proj(states[row, :length])
            parts = [slice(3 * number, 3 * number + 3) for number in range(2)]
            weights = [(keys[:, part] @ query[part] / 3**0.5).softmax(0) for part in parts]
            read = [own @ values[:, part] for own, part in zip(weights, parts, strict=True)]
            context = across.output_proj(torch.cat(read))
            after = asking[row, t] + context
            features = decoder.final_norm(after + last.feed_forward(last.around_feed_forward.norm(after)))
            gate = torch.sigmoid(head.blend.proj(torch.cat([context, features, embedded[row, t]]))).item()
            vocab = (decoder.embedding.weight @ features).softmax(0)
            looked = sum(weights) / 2
            torch.testing.assert_close(decoded.weights[row, t, :length], looked)
            for word in range(VOCAB + EXTRA):
                p = gate * float(vocab[word]) if word < VOCAB else 0.0
                p += (1 - gate) * sum(float(looked[j]) for j in range(length) if said[j] == word)
                assert math.exp(found[row, t, word].item()) == pytest.approx(p, abs=1e-10)


def test_an_encoder_that_joins_positions_is_refused():
    model = RNNSearch(**SMALL, head="pointer_generator", encoder="pyramidal")
    source, target, words = batch()
    with pytest.raises(ValueError, match="one position for each token"):
        model(source, MASK, target, words=words)


def test_words_are_needed():
    source, target, _ = batch()
    for name in ("copynet", "rnnsearch_gate", "transformer_gate"):
        with pytest.raises(ValueError, match=r"set task\.copying to yes"):
            build(name)(source, MASK, target.clamp(max=VOCAB - 1))
    with pytest.raises(ValueError, match="coverage_weight must be 0 or more"):
        PointerGenerator(**SMALL, coverage_weight=-1.0)


@pytest.mark.parametrize("mode", ["bias", "linear"])
@pytest.mark.parametrize(("kind", "sizes"), [(RNNSearch, SMALL), (Luong, SMALL), (Transformer, TRANSFORMER)])
def test_a_lexicon_is_that_of_the_equations(kind, sizes, mode):
    """Equations 3 and 4 of Arthur et al., with loops over positions and translations."""
    torch.manual_seed(0)
    model = kind(**sizes, head=partial(LexiconHead, mode=mode, entries=2, epsilon=0.01)).double().eval()
    head = model.head
    lexicon, probabilities = torch.randint(3, VOCAB, (13, 3)), torch.rand(13, 3).double()
    probabilities /= probabilities.sum(1, keepdim=True)
    lexicon[:, 1] = lexicon[:, 0]  # named twice
    head.look_up.fill(lexicon, probabilities)
    source, target, _ = batch()
    target = target.clamp(max=VOCAB - 1)
    decoded = model(source, MASK, target)
    found = head.logits(decoded.features).exp()
    for row in range(3):
        for t in range(STEPS):
            looked = [0.0] * VOCAB
            for j in range(int(LENGTHS[row])):
                for k in range(3):
                    token = int(source[row, j])
                    share = decoded.weights[row, t, j] * probabilities[token, k]
                    looked[int(lexicon[token, k])] += share.item()
            logits = head.generate.logits(decoded.features.features[row, t])
            if mode == "bias":
                expected = (logits + (torch.tensor(looked, dtype=torch.double) + 0.01).log()).softmax(0)
            else:
                gate = torch.sigmoid(head.blend.constant)
                expected = gate * logits.softmax(0) + (1 - gate) * torch.tensor(looked, dtype=torch.double)
            torch.testing.assert_close(found[row, t], expected)
    origins = head.origins(decoded.features, found.argmax(-1))
    assert origins.ways == ("generate", "lexicon")
    assert (origins.places[..., 1] < KEYS).all()


@pytest.mark.parametrize("copies", [True, False])
def test_convolutional_attention_is_that_of_the_equations(copies):
    """Section 2 of Allamanis et al., with loops over positions and taps."""
    torch.manual_seed(2)
    model = ConvolutionalAttention(**CONVOLVED, copies=copies).double().eval()
    source, target, words = batch()
    target = target if copies else target.clamp(max=VOCAB - 1)
    decoder, row, length = model.decoder, 0, 6
    score, table = decoder.attention.score, decoder.embedding.weight.detach()

    def conv(rows, layer):
        """Convolves vectors, with zeros before and after them."""
        width = layer.kernel_size[0]
        left = (width - 1) // 2
        found = []
        for place in range(len(rows)):
            total = layer.bias.detach().clone()
            for tap in range(width):
                if 0 <= place + tap - left < len(rows):
                    total = total + layer.weight.detach()[:, :, tap] @ rows[place + tap - left]
            found.append(total)
        return found

    given = {"words": words} if copies else {}
    decoded = model(source, MASK, target, **given)
    found = model.head.logits(decoded.features)[row].softmax(-1).detach()
    scaled = table.shape[1] ** 0.5 * table
    embedded = [scaled[token] for token in source[row, :length].tolist()]
    first = [torch.where(x > 0, x, 0.1 * x) for x in conv(embedded, score.conv_1)]
    second = conv(first, score.conv_2)
    hidden = decoder.start.states[0, 0].detach()
    for t in range(STEPS):
        token = int(target[row, t])
        inputs = decoder.input_proj(scaled[token if token < VOCAB else 3])
        hidden = decoder.cell.step(inputs[None], (hidden[None],))[0][0].detach()
        filtered = [x * hidden for x in second]
        norm = sum(float((x * x).sum()) for x in filtered) ** 0.5
        features = [x / norm for x in filtered]
        alpha = torch.cat(conv(features, score.conv_att)).softmax(0)
        context = sum(a * e for a, e in zip(alpha, embedded, strict=True))
        expected = (table @ context).softmax(0)  # the bias starts at zero
        if not copies:
            torch.testing.assert_close(found[t], expected)
            continue
        kappa = torch.cat(conv(features, decoder.copy_conv)).softmax(0)
        gate = torch.sigmoid(max(torch.cat(conv(features, decoder.gate_conv))))
        for word in range(VOCAB + EXTRA):
            p = float((1 - gate) * expected[word]) if word < VOCAB else 0.0
            p += float(gate * sum(kappa[j] for j in range(length) if int(words[row, j]) == word))
            assert float(found[t, word]) == pytest.approx(p, abs=1e-10)


def test_both_sides_of_convolutional_attention_share_embeddings():
    with pytest.raises(ValueError, match=r"set task\.joint to yes"):
        ConvolutionalAttention(source_vocab=7, target_vocab=5)
    model = ConvolutionalAttention(**{**CONVOLVED, "dropout": 0.5}, copies=False).train()
    source, target, _ = batch()
    assert model(source, MASK, target.clamp(max=VOCAB - 1)).features.shape == (4, STEPS, 5)


def test_convolutional_attention_says_the_word_it_attends_to_from_the_start():
    """Otherwise training spends its first thousands of updates on longer embeddings."""
    torch.manual_seed(3)
    model = ConvolutionalAttention(source_vocab=997, target_vocab=997, copies=False).eval()
    source = torch.arange(7, 997, 11).unsqueeze(1)  # one word each, so that all attention is on it
    decoded = model(source, torch.ones_like(source, dtype=torch.bool), torch.full_like(source, 1))
    probabilities = model.head.logits(decoded.features).softmax(-1).squeeze(1)
    assert probabilities.gather(1, source).mean() > 0.8
