import pytest
import torch
from torch import nn

from saccade import Attention, MultiHead
from saccade.layers import FeedForward, TransformerDecoderLayer, TransformerEncoderLayer
from saccade.scores import ScaledDotScore, scores
from saccade.selections import NonProjectiveTree, Windowed

DIM, HEADS, HIDDEN = 12, 3, 17


def heads(**parts):
    parts.setdefault("score", ScaledDotScore())
    return MultiHead(attention=Attention(**parts), num_heads=HEADS, query_dim=DIM)


@torch.no_grad()
def copy_heads(ours, theirs):
    for i, proj in enumerate((ours.query_proj, ours.key_proj, ours.value_proj)):
        proj.weight.copy_(theirs.in_proj_weight.chunk(3)[i])
        proj.bias.copy_(theirs.in_proj_bias.chunk(3)[i])
    ours.output_proj.load_state_dict(theirs.out_proj.state_dict())


@torch.no_grad()
def randomise(module):
    for parameter in module.parameters():
        parameter.normal_(0.0, 0.3)


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_encoder_layer_equals_pytorchs(norm, activation):
    torch.manual_seed(0)
    theirs = nn.TransformerEncoderLayer(
        DIM, HEADS, HIDDEN, 0.0, activation, batch_first=True, norm_first=norm == "pre"
    ).double()
    randomise(theirs)
    feed_forward = FeedForward(dim=DIM, hidden_dim=HIDDEN, activation=activation)
    ours = TransformerEncoderLayer(self_attention=heads(), feed_forward=feed_forward, norm=norm).double()
    copy_heads(ours.self_attention, theirs.self_attn)
    feed_forward.hidden_proj.load_state_dict(theirs.linear1.state_dict())
    feed_forward.output_proj.load_state_dict(theirs.linear2.state_dict())
    ours.around_attention.norm.load_state_dict(theirs.norm1.state_dict())
    ours.around_feed_forward.norm.load_state_dict(theirs.norm2.state_dict())
    x = torch.randn(2, 5, DIM, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    expected = theirs(x, src_key_padding_mask=~mask)
    torch.testing.assert_close(ours(x, mask.unsqueeze(1))[mask], expected[mask])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_decoder_layer_equals_pytorchs(norm):
    torch.manual_seed(0)
    theirs = nn.TransformerDecoderLayer(DIM, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=norm == "pre").double()
    randomise(theirs)
    feed_forward = FeedForward(dim=DIM, hidden_dim=HIDDEN)
    ours = TransformerDecoderLayer(
        self_attention=heads(), cross_attention=heads(), feed_forward=feed_forward, norm=norm
    ).double()
    copy_heads(ours.self_attention, theirs.self_attn)
    copy_heads(ours.cross_attention, theirs.multihead_attn)
    feed_forward.hidden_proj.load_state_dict(theirs.linear1.state_dict())
    feed_forward.output_proj.load_state_dict(theirs.linear2.state_dict())
    ours.around_self.norm.load_state_dict(theirs.norm1.state_dict())
    ours.around_cross.norm.load_state_dict(theirs.norm2.state_dict())
    ours.around_feed_forward.norm.load_state_dict(theirs.norm3.state_dict())
    x, source = torch.randn(2, 7, DIM, dtype=torch.float64), torch.randn(2, 5, DIM, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    causal = nn.Transformer.generate_square_subsequent_mask(7, dtype=torch.float64)
    expected = theirs(x, source, tgt_mask=causal, memory_key_padding_mask=~mask)
    outputs, _ = ours(x, ours.cross_attention.prepare(source, mask=mask.unsqueeze(1)))
    torch.testing.assert_close(outputs, expected)


@pytest.mark.parametrize(
    ("selection", "message"), [(Windowed(), "Windowed.*cross-attention"), (NonProjectiveTree(), "all queries at once")]
)
def test_refuses_what_cannot_look_back(selection, message):
    with pytest.raises(ValueError, match=message):
        TransformerDecoderLayer(
            self_attention=heads(selection=selection),
            cross_attention=heads(),
            feed_forward=FeedForward(dim=DIM, hidden_dim=HIDDEN),
        )


def test_refuses_a_score_with_a_history():
    score = scores.create("location_aware", query_dim=4, key_dim=4, hidden_dim=5)
    with pytest.raises(ValueError, match="growing past"):
        TransformerDecoderLayer(
            self_attention=heads(score=score),
            cross_attention=heads(),
            feed_forward=FeedForward(dim=DIM, hidden_dim=HIDDEN),
        )
