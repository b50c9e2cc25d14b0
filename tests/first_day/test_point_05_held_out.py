"""Examples with equal sources are held out together."""

import random

from saccade.data.corpus import choose_held_out, mark
from saccade.fields import Text


def test_no_source_is_on_both_sides() -> None:
    chance = random.Random(1)
    examples = [{"source": f"source {chance.randrange(40)}", "target": f"target {n}"} for n in range(200)]
    marks = [mark(example, {"source": Text()}) for example in examples]
    held = choose_held_out(marks, 0.2)
    inside = {e["source"] for e, m in zip(examples, marks, strict=True) if m in held}
    outside = {e["source"] for e, m in zip(examples, marks, strict=True) if m not in held}
    assert inside
    assert outside
    assert not inside & outside
