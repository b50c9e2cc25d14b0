"""The page's tokenisers, in JavaScript, split and join texts as Python's do."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import saccade.export
from saccade.data.tokenisers import tokenisers
from saccade.export.page import TOKENISERS

from .test_vocabulary import TEXTS, TRAINING

ASSETS = Path(saccade.export.__file__).parent / "assets"
MORE = [
    "Straße, GROẞ; İstanbul -- ΟΔΟΣ",
    "e\u0301te\u0301 \ufb01n \u212b",  # composed by NFC
    "no\u00a0break\u2003em\u3000wide\u0085next\u2028line\ufeffbom\u200bzero",
    "\x1cfile\x1d\x1e\x1f separators",
    "👩\u200d👩\u200d👧 flags 🇩🇪 and \U0001d518nicode",
    "don't—stop…now!!! (a)(b) «c»d $5+5=10",
    "▁already ￭marked￭ _under_score_",
    "漢字かな交じり文。全角\uff01",
]
SCRIPT = """
const saved = JSON.parse(require("fs").readFileSync(0, "utf8"));
const vocabulary = new Vocabulary(saved.tokeniser);
const ids = saved.texts.map((text) => vocabulary.encode(text));
console.log(JSON.stringify({ ids, texts: ids.map((each) => vocabulary.decode(each)) }));
"""


@pytest.mark.slow
@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", TOKENISERS)
def test_texts_become_the_same_ids_and_back(kind, lowercase):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node to run JavaScript with")
    options = {"vocab_size": 130} if kind in ("bpe", "unigram") else {"min_frequency": 1}
    tokeniser = tokenisers.create(kind, lowercase=lowercase, **options).fit([*TRAINING, *MORE[:5]] * 3)
    texts = [*TEXTS, *MORE]
    given = json.dumps({"tokeniser": json.loads(tokeniser.dumps()), "texts": texts})
    code = (ASSETS / "vocabulary.js").read_text(encoding="utf-8") + SCRIPT
    done = subprocess.run([node, "-e", code], input=given, capture_output=True, text=True, check=True, encoding="utf-8")
    found = json.loads(done.stdout)
    for text, ids, joined in zip(texts, found["ids"], found["texts"], strict=True):
        assert ids == tokeniser.encode(text), text
        assert joined == tokeniser.decode(ids), text
