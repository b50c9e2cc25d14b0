import datetime
import random
import sys
import time

import pytest

from saccade.data import date_forms, dates
from saccade.data.dates import FIRST, LAST, LOCALES, generate, split_of
from saccade.data.tokenisers import CharTokeniser
from tests.data.stand_ins import read


@pytest.fixture(scope="module")
def examples():
    return list(generate(20000, seed=3))


def test_two_dozen_languages():
    assert len({locale.partition("_")[0] for locale in LOCALES}) >= 24
    assert {example.locale for example in generate(2000)} == set(LOCALES)


def test_a_source_means_one_date(examples):
    meant = {}
    for example in [*examples, *generate(40000, seed=4, tagged=0.0)]:
        assert meant.setdefault(example.source, example.target) == example.target


def test_targets_are_dates_in_range(examples):
    years = [datetime.date.fromisoformat(example.target).year for example in examples]
    assert min(years) == FIRST.year
    assert max(years) == LAST.year
    assert 0.6 < sum(1970 <= year < 2040 for year in years) / len(years) < 0.75


def test_sources_are_normal_text(examples):
    tokeniser = CharTokeniser().fit(example.source for example in examples)
    for example in examples:
        assert tokeniser.normalise(example.source) == example.source


def test_known_forms():
    date = datetime.date(2026, 11, 15)
    still = random.Random(0)
    still.random = lambda: 0.99  # no variation
    wanted = {
        "de": "Sonntag, 15. November 2026",
        "en_US": "Sunday, November 15, 2026",
        "da": "søndag den 15. november 2026",
        "ru": "воскресенье, 15 ноября 2026 г.",  # noqa: RUF001
        "zh": "2026年11月15日星期日",
    }
    for locale, text in wanted.items():
        example = dates.write(date, locale, date_forms.forms(locale)[0], still, 0.5)
        assert example.source == text
        assert example.target == "2026-11-15"


def test_ambiguous_forms_say_whose_they_are(examples):
    ambiguous = [e for e in examples if e.source[0].isdecimal() and e.source.split("/")[0] in map(str, range(1, 13))]
    for example in ambiguous:  # untagged: the day cannot be a month, or it is the same number
        day, month = example.target[8:], example.target[5:7]
        assert int(day) > 12 or day == month
    untagged_short = [e for e in examples if len(e.source) <= 8 and e.locale not in ("ja", "zh", "ko")]
    assert not [e for e in untagged_short if e.source[0].isdecimal() and e.target[:4] not in e.source]
    american = [e for e in examples if e.source.startswith("en-us ") and "/" in e.source]
    british = [e for e in examples if e.source.startswith("en-gb ") and "/" in e.source]
    for group, first in ((american, slice(5, 7)), (british, slice(8, 10))):
        assert len(group) > 20
        for example in group:
            assert int(example.source.split(" ")[1].split("/")[0]) == int(example.target[first])


def test_people_vary(examples):
    sources = [example.source for example in examples]
    assert any("th, " in s or "th " in s for s in sources)
    assert any("1er " in s for s in sources)
    assert any(s == s.lower() and "november" in s for s in sources)
    assert any("MARS" in s for s in sources)
    assert any("fevrier" in s or "aout" in s for s in sources)
    assert sum(e.target[:4] not in e.source for e in examples) > 1000  # two digits of the year


def test_alignments_are_gold(examples):
    for example in examples:
        pairs = [tuple(map(int, pair.split("-"))) for pair in example.alignment.split()]
        assert len(set(pairs)) == len(pairs)
        assert {j for _, j in pairs} == {0, 1, 2, 3, 5, 6, 8, 9}  # all but the hyphens
        for i, j in pairs:
            character = example.source[i]
            assert not character.isspace()
            partners = [other for other, target in pairs if target == j]
            if character.isdecimal() and len(partners) == 1 and example.target[j] != "0":
                assert character == example.target[j]


def test_alignment_of_one():
    parts = [
        date_forms.DatePart("de "),
        date_forms.DatePart("3", "day"),
        date_forms.DatePart(". "),
        date_forms.DatePart("Mai", "month"),
    ]
    parts += [date_forms.DatePart(" "), date_forms.DatePart("26", "year")]
    assert dates.align(parts, "2026-05-03") == "3-8 3-9 6-5 6-6 7-5 7-6 8-5 8-6 10-0 10-1 10-2 11-0 11-1 11-3"


def test_splits_share_no_date_whatever_the_seed():
    found = {split: {e.target for e in generate(5000, split=split, seed=k)} for k, split in enumerate(dates.SPLITS)}
    assert not found["train"] & found["test"] | found["train"] & found["valid"] | found["valid"] & found["test"]
    every = [split_of(datetime.date.fromordinal(day)) for day in range(FIRST.toordinal(), LAST.toordinal() + 1)]
    assert 0.04 < every.count("test") / len(every) < 0.06
    assert 0.04 < every.count("valid") / len(every) < 0.06


def test_equal_arguments_equal_examples_and_quickly():
    start = time.perf_counter()
    first = list(generate(20000, seed=11))
    assert time.perf_counter() - start < 10
    assert first[:500] == list(generate(500, seed=11))
    assert first[:500] != list(generate(500, seed=12))


def test_read_as_files_are():
    assert list(read("dates:test:7:5", "source target alignment")) == [
        {"source": e.source, "target": e.target, "alignment": e.alignment} for e in generate(7, split="test", seed=5)
    ]
    for wrong, message in (
        ("dates:tset", "Did you mean 'test'"),
        ("dates:train:many", "'dates:train:20000'"),
        (f"dates:train:{'9' * 5000}", "'dates:train:20000'"),
    ):
        with pytest.raises(ValueError, match=message):
            read(wrong)
    with pytest.raises(ValueError, match=r"no column 'sources'\. Did you mean 'source'"):
        read("dates:train", "sources")


def test_mistakes_are_named(monkeypatch):
    with pytest.raises(ValueError, match="Did you mean 'train'"):
        next(generate(1, split="trian"))
    with pytest.raises(ValueError, match="count"):
        next(generate(-1))
    monkeypatch.setitem(sys.modules, "babel", None)
    date_forms.forms.cache_clear()
    with pytest.raises(ModuleNotFoundError, match=r'pip install "saccade\[train\]"'):
        next(generate(1))
