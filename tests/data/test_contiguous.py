"""One long text in streams: every token is predicted once, in order."""

import pytest

from saccade.data.contiguous import OrderedBatches, Pieces

TEXTS = [[5, 6, 7, 2], [8, 2], [9, 10, 11, 12, 13, 2], [14, 2]]
TOKENS = [token for text in TEXTS for token in text]


def pieces(streams, length):
    return Pieces([{"text": text} for text in TEXTS], begin=1, streams=streams, length=length)


@pytest.mark.parametrize("length", [1, 3, 5, 100])
@pytest.mark.parametrize("streams", [1, 2, 3, 5, 14, 100])
def test_every_token_is_predicted_once_after_the_one_before_it(streams, length) -> None:
    made = pieces(streams, length)
    read: dict[int, list[int]] = {}
    for place, piece in enumerate(made):
        tokens = piece["text"]
        assert 1 <= len(tokens) <= length + 1
        own = read.setdefault(place % made.streams, [])
        if own and len(tokens) > 1:
            assert tokens[0] == own[-1]
        own += tokens[1:]
    assert [token for stream in sorted(read) for token in read[stream]] == TOKENS


def test_the_first_token_of_each_stream_follows_the_last_of_the_one_before() -> None:
    made = pieces(3, 2)
    assert [made[stream]["text"] for stream in range(3)] == [[1, 5, 6], [8, 2, 9], [12, 13, 2]]
    assert made[-1] == made[len(made) - 1]
    assert made[:2] == [made[0], made[1]]


def test_batches_are_the_next_pieces_of_all_streams_and_can_be_resumed() -> None:
    made = pieces(4, 2)
    batches = OrderedBatches(made)
    assert list(batches) == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert [made.begins(batch) for batch in batches] == [True, False]  # a second epoch
    shards = [list(OrderedBatches(made, shard=shard, shards=2)) for shard in range(2)]
    assert shards == [[[0, 2], [4, 6]], [[1, 3], [5, 7]]]
    half = OrderedBatches(made)
    next(iter(half))
    again = OrderedBatches(made)
    again.load_state_dict(half.state_dict())
    assert list(again) == [[4, 5, 6, 7]]
    with pytest.raises(ValueError, match="does not match these batches"):
        OrderedBatches(pieces(2, 2)).load_state_dict(half.state_dict())
