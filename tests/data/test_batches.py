import numpy as np
import pytest

from saccade.data.batches import TokenBatches


def lengths(count, seed=0, sides=2):
    return np.random.default_rng(seed).integers(1, 53, size=(count, sides))


def take(batches, count):
    return [batch for batch, _ in zip(batches, range(count), strict=False)]


@pytest.mark.parametrize("sides", [1, 2, 3])
@pytest.mark.parametrize("shuffle", [True, False])
def test_each_example_once_under_the_budget(sides, shuffle):
    sizes = lengths(997, sides=sides)
    batches = TokenBatches(sizes, budget=701, shuffle=shuffle, pool=211)
    found = list(batches)
    assert sorted(i for batch in found for i in batch) == list(range(997))
    assert len(found) == len(batches)
    for batch in found:
        assert len(batch) * sizes[batch].max(axis=0).sum() <= 701


def test_one_size_is_the_same_as_one_side():
    sizes = lengths(101, sides=1)
    assert list(TokenBatches(sizes[:, 0], budget=97)) == list(TokenBatches(sizes, budget=97))


def test_a_row_beyond_the_budget_is_alone():
    found = list(TokenBatches([3, 50, 4, 60], budget=10))
    assert sorted(map(sorted, found)) == [[0, 2], [1], [3]]


def test_little_is_padded():
    sizes = lengths(20011)
    assert TokenBatches(sizes, budget=2048).padding() < 0.06
    batches = TokenBatches(sizes, budget=2048)
    padding = batches.padding()
    cost = 0
    for batch in batches:
        assert np.ptp(sizes[batch, 1]) <= 3
        cost += len(batch) * sizes[batch].max(axis=0).sum()
    assert padding == pytest.approx(1 - sizes.sum() / cost)
    assert TokenBatches(sizes, budget=2048, pool=1).padding() == 0  # each row alone


def test_the_order_depends_on_seed_and_epoch_alone():
    sizes = lengths(499)

    def epochs(seed):
        batches = TokenBatches(sizes, budget=307, seed=seed)
        return [list(batches) for _ in range(3)]

    first = epochs(5)
    assert epochs(5) == first
    assert epochs(6) != first
    assert first[0] != first[1] != first[2]
    assert sorted(map(sorted, first[0])) != sorted(map(sorted, first[1]))  # other neighbours, not only another order
    still = TokenBatches(sizes, budget=307, shuffle=False)
    assert list(still) == list(still)


def test_small_batches_do_not_come_first():
    sizes = np.arange(1, 400)
    means = [sizes[batch].mean() for batch in TokenBatches(sizes, budget=999)]
    assert means != sorted(means)


@pytest.mark.parametrize("position", [0, 1, 7, 22])
@pytest.mark.parametrize("epoch", [0, 2])
def test_going_on_exactly_where_it_stopped(epoch, position):
    sizes = lengths(307)
    running = TokenBatches(sizes, budget=607, seed=3)
    for _ in range(epoch):
        list(running)
    iterator = iter(running)
    for _ in range(position):
        next(iterator)
    state = running.state_dict()
    rest = list(iterator)
    after = list(running)

    resumed = TokenBatches(sizes, budget=607, seed=3)
    resumed.load_state_dict(state)
    assert list(resumed) == rest
    assert list(resumed) == after


def test_a_position_at_the_end_of_an_epoch():
    sizes = lengths(101)
    running = TokenBatches(sizes, budget=303)
    list(running)
    assert (running.epoch, running.position) == (0, len(running))
    state = running.state_dict()
    resumed = TokenBatches(sizes, budget=303)
    resumed.load_state_dict(state)
    assert list(resumed) == list(running)
    assert resumed.epoch == running.epoch == 1


def test_a_position_in_other_batches_is_refused():
    sizes = lengths(101)
    state = TokenBatches(sizes, budget=303).state_dict()
    changed = sizes.copy()
    changed[5, 1] += 1
    for other, why in (
        (TokenBatches(sizes, budget=304), "token budget was 303 and is now 304"),
        (TokenBatches(sizes, budget=303, seed=1), "seed was 0 and is now 1"),
        (TokenBatches(sizes[1:], budget=303), "number of examples was 101 and is now 100"),
        (TokenBatches(changed, budget=303), "with different lengths"),
        (TokenBatches(sizes, budget=303, max_length=40), "with different lengths"),
    ):
        with pytest.raises(ValueError, match=f"does not match these batches: .*{why}"):
            other.load_state_dict(state)
        with pytest.raises(ValueError, match="the data, the token budget or the seed has changed"):
            other.load_state_dict(state | {"plan": state["plan"].split()[0]})  # as earlier versions saved it
    TokenBatches(sizes, budget=303).load_state_dict(state | {"plan": state["plan"].split()[0]})
    TokenBatches(sizes, budget=303, shard=1, shards=2).load_state_dict(state)


@pytest.mark.parametrize("shards", [2, 3, 7])
def test_shards_together_see_what_one_sees(shards):
    sizes = lengths(211)
    alone = TokenBatches(sizes, budget=401, seed=2)
    parts = [TokenBatches(sizes, budget=401, seed=2, shard=k, shards=shards) for k in range(shards)]
    for _ in range(2):
        for whole, *shares in zip(alone, *parts, strict=True):
            assert sorted(i for share in shares for i in share) == sorted(whole)
            assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_too_long_examples_are_counted():
    batches = TokenBatches([[3, 4], [9, 2], [2, 10], [5, 5]], budget=100, max_length=8)
    assert batches.dropped == 2
    assert sorted(i for batch in batches for i in batch) == [0, 3]


def test_nothing_to_batch():
    assert list(TokenBatches([], budget=5)) == []
    assert len(TokenBatches([7], budget=5, max_length=3)) == 0


def test_mistakes_are_named():
    for wrong, message in (
        ({"budget": 0}, "budget"),
        ({"budget": 5, "pool": 0}, "pool"),
        ({"budget": 5, "shard": 2, "shards": 2}, "shard=2"),
    ):
        with pytest.raises(ValueError, match=message):
            TokenBatches([1], **wrong)
    with pytest.raises(ValueError, match="sizes"):
        TokenBatches(np.ones((2, 2, 2)), budget=5)
