"""The four ids that every vocabulary starts with."""

PAD, BOS, EOS, UNK = range(4)

NAMES = ("<pad>", "<s>", "</s>", "<unk>")
"""Their names, in the order of the ids."""
