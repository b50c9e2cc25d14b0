"""Runs an exported model with onnxruntime and numpy: python run.py "a text" ["another text" ...]"""

import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime

sys.path.insert(0, str(Path(__file__).parent))
from vocabulary import BOS, EOS, NAMES, PAD, Vocabulary


class Model:
    """Answers as the run that it was exported from: `Model(folder).predict(["a text"], beam=5)`."""

    def __init__(self, folder=Path(__file__).parent, threads=0):
        self.about = json.loads((Path(folder) / "model.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        self.graphs = {
            name: onnxruntime.InferenceSession(str(Path(folder) / f"{name}.onnx"), options, ["CPUExecutionProvider"])
            for name in self.about["graphs"]
        }
        self.takes = {name: [given.name for given in graph.get_inputs()] for name, graph in self.graphs.items()}
        self.texts = {role: Vocabulary(saved) for role, saved in self.about["vocabularies"].items()}

    def run(self, name, given):
        graph = self.graphs[name]
        found = graph.run(None, {key: given[key] for key in self.takes[name]})
        return dict(zip([output.name for output in graph.get_outputs()], found))

    def predict(self, inputs, batch_size=64, **options):
        """A dictionary for each input: `answer`, `score`, and `weights` with the names of `queries` and `keys`."""
        answer = self._write if self.about["task"] == "generation" else self._label
        parts = [inputs[start : start + batch_size] for start in range(0, len(inputs), batch_size)]
        return [each for part in parts for each in answer(part, **options)]

    def _write(self, inputs, beam=5, nbest=1, length_penalty=0.6, coverage_penalty=0.0, max_length=None):
        if not 1 <= nbest <= beam:
            raise ValueError(f"nbest must be from 1 to beam={beam}, got {nbest}.")
        source, target, about = self.texts["source"], self.texts["target"], self.about
        read = [[*source.encode(text)[: about["reads"]], EOS] for text in inputs]
        real = [place for place, ids in enumerate(read) if len(ids) > 1]
        found = iter(self.search([read[n] for n in real], beam, nbest, length_penalty, coverage_penalty, max_length))
        answers = []
        for place, ids in enumerate(read):
            several = next(found) if place in real else [(0.0, [], [], True)]  # nothing was asked
            keys = [*(source.pieces[number] for number in ids[:-1]), NAMES[EOS]]
            best = [
                {
                    "answer": target.decode(tokens),
                    "score": score,
                    "finished": finished,
                    "queries": [
                        *(target.pieces[number] for number in tokens),
                        *[NAMES[EOS]] * (finished and place in real),
                    ],
                    "keys": keys,
                    "weights": np.array(looks)[:, : len(keys)] if len(looks) else None,
                }
                for score, tokens, looks, finished in several
            ]
            answers.append(best[0] if nbest == 1 else {**best[0], "nbest": best})
        return answers

    def search(self, sources, size, nbest, length_penalty, coverage_penalty, max_length):
        """Beam search, greedy with a size of 1: for each source the best (score, tokens, weights, finished)."""
        if not sources:
            return []
        ids, mask = padded(sources, PAD)
        out = self.run("encoder", {"source": ids, "source_mask": mask})
        state = {name: out[name] for name in self.about["state"]}
        limits = self.limits(out["mask"].sum(1), max_length)
        live = [[(0.0, [], [])] for _ in sources]
        ended = [[] for _ in sources]
        active, step, owners = list(range(len(sources))), 0, list(range(len(sources)))
        real = out["mask"]

        def score(total, steps, looks, sentence):
            plain = total / ((5 + steps) / 6) ** length_penalty
            if not coverage_penalty or not looks:
                return plain
            seen = np.clip(np.sum(looks, axis=0), 1e-6, 1.0)
            return plain + coverage_penalty * float(np.log(seen)[real[sentence]].sum())

        while active:
            log_probs = log_softmax(out["logits"].astype(np.float32))
            log_probs[:, [PAD, BOS]] = -np.inf
            rows, tokens, going, first = [], [], [], 0
            for sentence in active:
                hypotheses = live[sentence]
                totals = np.array([h[0] for h in hypotheses], dtype=np.float32)
                values = (log_probs[first : first + len(totals)] + totals[:, None]).ravel()
                places = largest(values, 2 * size)
                grown = []
                for rank, place in enumerate(places):
                    row, token = divmod(int(place), log_probs.shape[1])
                    looks = [out["weights"][first + row]] if "weights" in out else []
                    total, written, looked = float(values[place]), hypotheses[row][1], hypotheses[row][2] + looks
                    if token != EOS and total > -np.inf and len(grown) < size:
                        grown.append((total, [*written, token], looked, first + row, token))
                    elif token == EOS and rank < size and total > -np.inf:
                        ended[sentence].append((True, score(total, step + 1, looked, sentence), written, looked))
                finished = sorted((e[1] for e in ended[sentence] if e[0]), reverse=True)
                stopped = limits[sentence] <= step
                if stopped and len(finished) < nbest:
                    cut = [(False, score(t, step, k, sentence), w, k) for t, w, k in hypotheses]
                    ended[sentence] += cut
                steps = step + 2 if len(finished) >= size else limits[sentence] + 1
                bound = grown[0][0] / ((5 + steps) / 6) ** length_penalty if grown else -np.inf
                bound = -np.inf if size == 1 and len(finished) >= size else bound
                if not (stopped or not grown or (len(finished) >= nbest and finished[nbest - 1] >= bound)):
                    going.append(sentence)
                    live[sentence] = [g[:3] for g in grown]
                    rows += [g[3] for g in grown]
                    tokens += [g[4] for g in grown]
                first += len(hypotheses)
            active, step = going, step + 1
            if active:
                state, owners = self.chosen(state, np.array(rows), owners)
                out = self.run("decoder", {**state, "tokens": np.array(tokens)})
                state |= {name[5:]: value for name, value in out.items() if name.startswith("next_")}
        ranked = [sorted(each, key=lambda e: e[:2], reverse=True)[:nbest] for each in ended]
        return [[(score, tokens, looks, finished) for finished, score, tokens, looks in each] for each in ranked]

    def chosen(self, state, rows, owners):
        """The rows of the state that go on; what belongs to a whole sentence moves only if the sentences do."""
        after = [owners[row] for row in rows]
        moved = {n: v[rows] if after != owners or n in self.about["changed"] else v for n, v in state.items()}
        return moved, after

    def limits(self, positions, max_length):
        about = self.about["lengths"]
        most = 2 * np.ceil(about["ratio"] * positions.astype(np.float32)).astype(int) + 10
        most = np.clip(most, about["longest"] + 10, about["most"])
        most = most if about["written"] is None else np.minimum(most, about["written"])
        return most if max_length is None else np.full_like(most, max_length)

    def _label(self, inputs, threshold=0.5):
        given, keys = {}, []
        for role, vocabulary in self.texts.items():
            texts = [value[role] if isinstance(value, dict) else value for value in inputs]
            ids, own = zip(*(self._read(vocabulary, text) for text in texts))
            values, mask = padded(ids, vocabulary.ids.get("[PAD]", PAD))
            given |= {role: values, f"{role}_mask": mask}
            places = np.arange(values.shape[1])
            given[f"{role}_segments"] = (mask & (places >= np.array(own)[:, None])).astype(np.int64)
            keys = keys or [[vocabulary.pieces[token] for token in each] for each in ids]
        found = self.run("model", given)
        attention = {name: found[name] for name in self.about["attention"]}
        answers = []
        for row, logits in enumerate(found["logits"]):
            if self.about.get("form") == "tags":
                answers.append(self._tagged(logits, next(iter(self.texts.values())), inputs[row], keys[row]))
                if self.about["looks"] is not None:
                    weights = attention[self.about["looks"]][row].mean(0)
                    answers[-1]["weights"] = weights[answers[-1].pop("places"), : len(keys[row])]
                continue
            looks = {name: weights[row] for name, weights in attention.items()}
            answers.append({**self._decided(logits, row, inputs, threshold), "attention": looks, "keys": keys[row]})
            main = self.about["looks"]
            if main is not None:
                weights = looks[main].mean(0)
                weights = weights[:1] if self.about["first"] else weights.mean(0, keepdims=True)
                answers[-1]["weights"] = weights[:, : len(keys[row])]
        return answers

    def _tagged(self, logits, vocabulary, text, keys):
        """The tag of each word, which its first piece decides about."""
        text, places, place = text if isinstance(text, str) else next(iter(text.values())), [], 0
        for word in text.split():
            places.append(place)
            place += len(vocabulary.encode(word)) + (vocabulary.kind == "char")  # and the space after it
        places = [place for place in places if place < len(keys) - 1]
        p = np.exp(log_softmax(logits[places].astype(np.float32)))
        tags = [self.about["labels"][number] for number in p.argmax(1)]
        score = float(p.max(1).min()) if places else 1.0
        return {"answer": tags, "score": score, "queries": text.split()[: len(places)], "keys": keys, "places": places}

    def _read(self, vocabulary, text):
        """The ids that the model reads of a text, and how many of them belong to the first of a pair."""
        if vocabulary.kind != "wordpiece":
            ids = vocabulary.encode(text)
            return [*(ids if self.about["reads"] is None else ids[: self.about["reads"]]), EOS], 0
        cls, sep = vocabulary.ids["[CLS]"], vocabulary.ids["[SEP]"]
        texts = [vocabulary.encode(each) for each in ([text] if isinstance(text, str) else text)]
        kept = shares([len(ids) for ids in texts], self.about["reads"] - 1 - len(texts))
        head = {"end": 1, "middle": 0.25, "start": 0}[self.about["cut"]]
        parts = []
        for ids, most in zip(texts, kept):
            begin = int(head * most)
            parts.append(ids if len(ids) <= most else ids[:begin] + ids[len(ids) - (most - begin) :])
        first = [cls, *parts[0], sep]
        return first + [token for part in parts[1:] for token in (*part, sep)], len(first)

    def _decided(self, logits, row, inputs, threshold):
        about, names = self.about, self.about.get("labels")
        if about["task"] == "rating":
            number = float(logits[0]) * about["deviation"] + about["mean"]
            return {"answer": number, "score": float(logits[0])}
        if about["form"] == "one":
            p = np.exp(log_softmax(logits[None])[0])
        else:
            p = 1 / (1 + np.exp(-logits.astype(np.float32)))
        if about["form"] == "ordered":
            edges = np.concatenate([[1.0], p, [0.0]])
            p = np.maximum(edges[:-1] - edges[1:], 0.0)
            p = p / p.sum()
        probabilities = dict(zip(names, p.tolist()))
        if about["form"] == "several":
            chosen = [name for name in names if probabilities[name] >= threshold]
            return {"answer": chosen, "score": float(np.maximum(p, 1 - p).min()), "probabilities": probabilities}
        best = names[int(p.argmax())]
        return {"answer": best, "score": probabilities[best], "probabilities": probabilities}


def padded(several, pad):
    ids = np.full((len(several), max(map(len, several))), pad, dtype=np.int64)
    mask = np.zeros(ids.shape, dtype=bool)
    for row, each in enumerate(several):
        ids[row, : len(each)], mask[row, : len(each)] = each, True
    return ids, mask


def log_softmax(logits):
    shifted = logits - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def largest(values, count):
    """The places of the largest values, in order."""
    if len(values) > count:
        places = np.sort(np.argpartition(-values, count)[:count])
        return places[np.argsort(-values[places], kind="stable")]
    return np.argsort(-values, kind="stable")


def shares(lengths, most):
    """How many tokens of one text or two are read if there is room for `most`: the longer one is cut first."""
    if sum(lengths) <= most or len(lengths) == 1:
        return [min(length, most) for length in lengths]
    one, other = lengths
    if one <= most // 2:
        return [one, most - one]
    return [most - other, other] if other <= most // 2 else [most - most // 2, most // 2]


if __name__ == "__main__":
    for answer in Model().predict(sys.argv[1:]):
        print(answer["answer"], f"{answer['score']:.4f}", sep="\t")
