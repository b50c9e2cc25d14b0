import pytest
import torch

from saccade import record, selections
from saccade.interpretation.recording import interventions
from saccade.layers import LSTMNLayer, Tapes
from saccade.scores import AdditiveScore, Score
from tests.oracles.recurrent import run_lstmn

BATCH, LENGTH, INPUT, SIZE, SOURCE = 3, 7, 5, 11, 13
MASK = torch.ones(BATCH, LENGTH, dtype=torch.bool)


def layer(**options):
    torch.manual_seed(0)
    made = LSTMNLayer(input_dim=INPUT, hidden_dim=SIZE, **options).double()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))  # zero biases would hide mistakes
    return made


def inputs(length=LENGTH):
    torch.manual_seed(1)
    return torch.randn(BATCH, length, INPUT, dtype=torch.float64, requires_grad=True)


def source():
    torch.manual_seed(2)
    hidden, cells = torch.randn(2, BATCH, SOURCE, SIZE, dtype=torch.float64).unbind()
    return Tapes(hidden, cells, torch.arange(SOURCE) < torch.tensor([[SOURCE], [3], [1]]))


def paper_score(attention):
    """v . tanh(W_x x + W_r previous + W_h h), with one matrix each."""
    W_x, W_r = attention.score.query_proj.weight.split([INPUT, SIZE], dim=1)
    W_h, v = attention.score.key_proj.weight, attention.score.hidden_proj.weight[0]
    return lambda x, previous, h: v @ torch.tanh(W_x @ x + W_r @ previous + W_h @ h)


def cell_of(made):
    forget = torch.cat([torch.zeros(SIZE), made.cell.bias, torch.zeros(2 * SIZE)])
    return made.input_proj.weight[: 4 * SIZE], made.input_proj.bias[: 4 * SIZE] + forget, made.cell.weight


def test_the_papers_equations():
    made, x = layer(), inputs()
    with record(made) as trace:
        tapes = made(x, MASK)
    weights = trace.joined("attention")
    assert weights.shape == (BATCH, 1, LENGTH, LENGTH)
    assert not weights[:, :, 0].any()
    for row in range(BATCH):
        hidden, cells, intra, _ = run_lstmn(x[row], *cell_of(made), paper_score(made.attention))
        torch.testing.assert_close(tapes.hidden[row], hidden)
        torch.testing.assert_close(tapes.cells[row], cells)
        for t, expected in enumerate(intra, start=1):
            torch.testing.assert_close(weights[row, 0, t, :t], expected.detach())


def test_deep_fusion():
    made, x, read = layer(fusion=True), inputs(), source()
    with record(made) as trace:
        tapes = made(x, MASK, read)
    assert trace.joined("attention").shape == (BATCH, 1, LENGTH, LENGTH - 1)  # no step reads the last one
    weights = trace.joined("source_attention")
    assert weights.shape == (BATCH, 1, LENGTH, SOURCE)
    gate = made.source_input.weight, made.source_gate.weight, made.source_input.bias
    for row, length in enumerate(read.mask.sum(1).tolist()):
        of_source = (read.hidden[row, :length], read.cells[row, :length], paper_score(made.source_attention), *gate)
        hidden, cells, _, inter = run_lstmn(x[row], *cell_of(made), paper_score(made.attention), of_source)
        torch.testing.assert_close(tapes.hidden[row], hidden)
        torch.testing.assert_close(tapes.cells[row], cells)
        torch.testing.assert_close(weights[row, 0, :, :length], torch.stack(inter).detach())


def test_the_first_step_reads_nothing():
    made, x = layer(), inputs(1)
    tapes = made(x, MASK[:, :1])
    enter, _, candidate, leave = made.input_proj(x).chunk(4, -1)
    torch.testing.assert_close(tapes.cells, enter.sigmoid() * candidate.tanh())
    torch.testing.assert_close(tapes.hidden, leave.sigmoid() * tapes.cells.tanh())


SCORES = {
    "additive": "additive",
    "bilinear": "general",
    "with a bias": AdditiveScore(query_dim=INPUT + SIZE, key_dim=SIZE, hidden_dim=3, bias=True),
    "mlp": "mlp",
}


@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("selection", ["softmax", "sparsemax", selections.Sigmoid()], ids=str)
@pytest.mark.parametrize("score", SCORES)
def test_steps_equal_the_sequence(score, selection, window):
    made, x = layer(score=SCORES[score], selection=selection, window=window), inputs()
    tapes = made(x, MASK)
    state = made.begin(BATCH, like=x)
    stepped = []
    for t in range(LENGTH):
        state = made.step(x[:, t], state)
        stepped.append(state)
        torch.testing.assert_close(state.hidden, tapes.hidden[:, t])
    torch.testing.assert_close(torch.stack([each.hidden for each in stepped], 1), tapes.hidden)
    torch.testing.assert_close(state.tapes.values, torch.cat([tapes.hidden, tapes.cells], -1))
    leaves = [x, *made.parameters()]
    towards = torch.randn_like(tapes.hidden)
    torch.testing.assert_close(
        torch.autograd.grad(torch.stack([each.hidden for each in stepped], 1), leaves, towards, allow_unused=True),
        torch.autograd.grad(tapes.hidden, leaves, towards, allow_unused=True),
    )


def test_a_state_can_be_continued_twice():
    made, x = layer(), inputs()
    state = made.begin(BATCH, like=x)
    for t in range(3):
        state = made.step(x[:, t], state)
    made.step(x[:, 6], made.step(x[:, 5], state))
    again = made.step(x[:, 4], made.step(x[:, 3], state))
    torch.testing.assert_close(again.hidden, made(x[:, :5], MASK[:, :5]).hidden[:, 4])


def test_a_window_reads_the_latest_states_alone():
    made, x = layer(window=2), inputs()
    with record(made) as trace:
        made(x, MASK)
    weights = trace.joined("attention")[0, 0]
    assert [row.nonzero().flatten().tolist() for row in weights] == [[], [0], [0, 1], [1, 2], [2, 3], [3, 4], [4, 5]]


@pytest.mark.parametrize("fusion", [False, True])
def test_gradcheck(fusion):
    made, read = layer(fusion=fusion), source() if fusion else None
    x = inputs(3)[:2]
    if read is not None:
        read = Tapes(*(each[:2] for each in read))
    assert torch.autograd.gradcheck(lambda given: made(given, MASK[:2, :3], read)[:2], x)


@pytest.mark.parametrize("fusion", [False, True])
def test_padding_affects_no_real_step(fusion):
    made, x = layer(fusion=fusion), inputs().detach()
    read = source() if fusion else None
    whole = made(x, MASK, read)
    changed = x.clone()
    changed[:, 4:] = 1e3
    other = made(changed, torch.arange(LENGTH) < torch.full((BATCH, 1), 4), read)
    torch.testing.assert_close(other.hidden[:, :4], whole.hidden[:, :4])
    if read is not None:
        padded = Tapes(*(torch.where(read.mask.unsqueeze(-1), each, 1e3) for each in read[:2]), read.mask)
        torch.testing.assert_close(made(x, MASK, padded).hidden, whole.hidden)


def test_changed_weights_change_the_states():
    made, x = layer(), inputs().detach()
    plain = made(x, MASK).hidden
    with record(made, change={"attention": interventions.uniform()}) as trace:
        changed = made(x, MASK).hidden
    torch.testing.assert_close(changed[:, :2], plain[:, :2])  # at most one state to read
    assert not torch.allclose(changed[:, 2:], plain[:, 2:])
    weights = trace.joined("attention")[0, 0]
    torch.testing.assert_close(weights[4, :4], torch.full((4,), 0.25, dtype=torch.float64))


def test_compiled_code_gives_the_same():
    made, x = layer().float(), inputs(3).detach().float()
    compiled = torch.compile(lambda given: made(given, MASK[:, :3]).hidden, backend="eager")
    torch.testing.assert_close(compiled(x), made(x, MASK[:, :3]).hidden)


def test_no_steps():
    made = layer()
    assert made(inputs(0), MASK[:, :0]).hidden.shape == (BATCH, 0, SIZE)


def test_refuses():
    with pytest.raises(ValueError, match="window"):
        layer(window=0)
    with pytest.raises(ValueError, match="growing past"):
        layer(score="neural_coverage")
    with pytest.raises(ValueError, match="needs all queries at once"):
        layer(selection="projective_tree")
    with pytest.raises(ValueError, match="build it with fusion=True"):
        layer()(inputs(), MASK, source())
    with pytest.raises(ValueError, match="pass its tapes"):
        layer(fusion=True)(inputs(), MASK)


class Doubled(AdditiveScore):
    def compare(self, query, prepared, state=None):
        return 2.0 * super().compare(query, prepared, state)


class Own(Score):
    """One hidden layer, written by a user."""

    def __init__(self, of):
        super().__init__()
        self.of = of

    def compare(self, query, prepared, state=None):
        return self.of.compare(query, self.of.prepare(prepared))

    def hidden_layer(self):
        return self.of.hidden_layer()


def test_a_score_that_says_it_is_one_hidden_layer_runs_by_the_kernel():
    made, x = layer(), inputs()
    usual = made(x, MASK).hidden
    made.attention.score = Own(made.attention.score)
    assert made._all_at_once(x) is not None
    torch.testing.assert_close(made(x, MASK).hidden, usual)
    torch.testing.assert_close(made._step_by_step(x, None)[0].chunk(2, -1)[0], usual)


def test_a_score_that_computes_in_its_own_way_is_read_step_by_step():
    made, x = layer(), inputs()
    score = Doubled(query_dim=INPUT + SIZE, key_dim=SIZE, hidden_dim=SIZE).double()
    score.load_state_dict(made.attention.score.state_dict())
    assert made.attention.score.hidden_layer() is not None
    assert score.hidden_layer() is None
    usual = made(x, MASK).hidden
    made.attention.score = score
    found = made(x, MASK).hidden
    assert not torch.allclose(found, usual)
    torch.testing.assert_close(found, made._step_by_step(x, None)[0].chunk(2, -1)[0])


def test_weights_are_those_of_the_forward_pass_after_the_parameters_have_changed():
    made, x = layer(), inputs()
    with record(made) as trace:
        made(x, MASK)
    expected = trace["attention"].weights.clone()
    with record(made) as trace:
        made(x, MASK)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(3.0)
    torch.testing.assert_close(trace["attention"].weights, expected)
