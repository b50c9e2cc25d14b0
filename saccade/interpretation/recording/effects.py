"""What PyTorch's functions do to attention weights."""

from __future__ import annotations

from enum import Enum, auto


class Effect(Enum):
    """What a function does to attention weights."""

    SAME = auto()  # makes other weights of the same meaning: masked, cast, sliced
    TIMES = auto()  # the same, or values multiplied by weights that are summed afterwards
    KEPT = auto()  # drops some out, or views them differently
    MIXED = auto()  # may mix heads
    PLACED = auto()  # puts them among others, which are zero or weights too
    PRODUCT = auto()
    SUM = auto()
    LOST = auto()  # rearranges them so that it is no longer known which key a weight belongs to


EFFECTS = {
    Effect.SAME: (
        *("to", "type", "type_as", "float", "half", "bfloat16", "double", "clone", "contiguous", "nan_to_num"),
        *("detach", "clamp", "clip", "clamp_min", "clamp_max", "pow", "__pow__", "normalize", "tril", "triu", "narrow"),
        *("masked_fill", "where", "div", "__truediv__", "__getitem__"),
        *("sub", "__sub__", "add", "__add__", "masked_fill_", "mul_", "div_"),
    ),
    Effect.TIMES: ("mul", "multiply", "__mul__", "__rmul__"),
    Effect.KEPT: (
        *("dropout", "alpha_dropout", "feature_dropout", "dropout_", "transpose", "permute", "view", "reshape"),
        *("unsqueeze", "squeeze", "expand", "flatten", "unflatten", "mT", "T", "repeat", "view_as", "expand_as"),
        *("movedim", "moveaxis", "swapaxes", "swapdims"),
    ),
    Effect.MIXED: ("linear", "conv2d"),
    Effect.PLACED: ("scatter", "scatter_", "scatter_add", "scatter_add_"),
    Effect.PRODUCT: (
        *("matmul", "__matmul__", "__rmatmul__", "bmm", "mm", "einsum", "tensordot"),
        *("baddbmm", "addmm", "addbmm", "linalg_matmul", "linalg_multi_dot", "mv", "inner"),
    ),
    Effect.SUM: ("sum",),
    Effect.LOST: (
        *("pad", "as_strided", "unfold", "roll", "chunk", "split", "unbind", "index_select", "cat", "stack", "flip"),
        *("repeat_interleave", "copy_", "__setitem__"),
    ),
}
PERMUTATIONS = frozenset(("transpose", "permute", "movedim", "moveaxis", "swapaxes", "swapdims"))
DROPOUTS = frozenset(("dropout", "alpha_dropout", "feature_dropout", "dropout_"))
ALSO_CLASSES = frozenset(("cat", "stack", "copy_", "__setitem__"))
"""What models also do to the probabilities of classes."""
EFFECT_OF = {name: effect for effect, names in EFFECTS.items() for name in names}
