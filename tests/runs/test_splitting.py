from saccade.data.corpus import Corpus
from saccade.runs.splitting import Purpose, Split
from saccade.tasks import LanguageModelling


def test_the_end_of_a_contiguous_text_is_held_out():
    examples = [{"text": f"line {n}"} for n in range(41)]
    split = Split(examples, LanguageModelling(contiguous=True), Corpus(train="book.txt"))
    parts = split.parts(0.1).tolist()
    assert parts == [Purpose.TRAIN] * 37 + [Purpose.VALID] * 4
    scattered = Split(examples, LanguageModelling(), Corpus(train="book.txt")).parts(0.1).tolist()
    assert scattered != parts
