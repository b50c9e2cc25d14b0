// Texts to ids and back, as the exported model was trained.
const [PAD, BOS, EOS, UNK] = [0, 1, 2, 3];
const NAMES = ["<pad>", "<s>", "</s>", "<unk>"];
const SPACE = "▁", JOINER = "￭";
const isSign = (letter, but) => !but.includes(letter) && /^[\p{P}\p{S}]$/u.test(letter);

// White space as Python's str.split() sees it: JavaScript's \s has U+FEFF, but not U+0085 and U+001C to U+001F.
const WHITE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/gu;

class Vocabulary {
  constructor(saved) {
    this.kind = saved.kind;
    this.lowercase = saved.options.lowercase;
    this.subwords = saved.kind === "bpe" || saved.kind === "unigram";
    this.pieces = this.subwords ? [...NAMES, ...saved.vocabulary.slice(4)] : [...NAMES, ...saved.vocabulary];
    this.ids = new Map(this.pieces.map((piece, number) => [piece, number]).slice(4));
    this.ranks = new Map((saved.merges || []).map((pair, rank) => [pair, rank]));
    this.scores = saved.scores || [];
  }

  encode(text) {
    return this.units(text).flatMap(([, ids]) => ids);
  }

  // The parts of a text that can be copied, each with its ids.
  units(text) {
    return this.split(this.normalised(text)).map((word) => {
      if (!this.subwords) return [word, [this.ids.get(word) ?? UNK]];
      return [word.join(""), this.kind === "bpe" ? this.merged(word) : this.likeliest(word)];
    });
  }

  // The piece for each id; from the size of the vocabulary on, those of `extra`.
  named(ids, extra = []) {
    return ids.map((number) => this.pieces[number] ?? extra[number - this.pieces.length]);
  }

  decode(ids, extra = []) {
    const pieces = this.named(ids, extra);
    if (this.kind === "word")
      return pieces.join(" ").replaceAll(` ${JOINER}`, "").replaceAll(`${JOINER} `, "").replaceAll(JOINER, "");
    if (this.kind === "pretokenised") return pieces.join(" ");
    return this.subwords ? pieces.join("").replaceAll(SPACE, " ").trim() : pieces.join("");
  }

  normalised(text) {
    const mark = { word: JOINER, bpe: SPACE, unigram: SPACE }[this.kind];
    const whole = (this.lowercase ? text.toLowerCase() : text).normalize("NFC");
    return (mark ? whole.replaceAll(mark, "_") : whole).replace(WHITE, " ").replace(/^ | $/g, "");
  }

  split(text) {
    if (!text) return [];
    if (this.kind === "char") return [...text];
    if (this.kind === "pretokenised") return text.split(" ");
    if (this.kind === "word") {
      const letters = [...text];
      return letters.map((letter, place) => {
        if (!isSign(letter, "_")) return letter;
        const before = letters[place - 1], after = letters[place + 1];
        const left = before !== undefined && before !== " ";
        const right = after !== undefined && after !== " " && !isSign(after, "_");
        return (left ? ` ${JOINER}` : "") + letter + (right ? `${JOINER} ` : "");
      }).join("").split(" ").filter(Boolean);
    }
    return text.split(" ").flatMap((word) => this.apart([SPACE, ...word]));
  }

  apart(letters) {
    const signs = letters.map((letter) => isSign(letter, `_${SPACE}`));
    signs[0] = signs[1] === true;
    const parts = [];
    letters.forEach((letter, place) => {
      if (place && signs[place] === signs[place - 1]) parts[parts.length - 1].push(letter);
      else parts.push([letter]);
    });
    return parts;
  }

  merged(letters) {
    const parts = [...letters];
    for (;;) {
      let best = Infinity, found = -1;
      for (let place = 0; place + 1 < parts.length; place++) {
        const rank = this.ranks.get(`${parts[place]} ${parts[place + 1]}`) ?? Infinity;
        if (rank < best) [best, found] = [rank, place];
      }
      if (found < 0) return parts.map((part) => this.ids.get(part) ?? UNK);
      parts.splice(found, 2, parts[found] + parts[found + 1]);
    }
  }

  likeliest(letters) {
    const unknown = Math.min(...this.scores.slice(4)) - 10;
    const best = [{ total: 0, ids: [] }];
    for (let end = 1; end <= letters.length; end++) {
      best.push({ total: -Infinity, ids: [] });
      for (let begin = 0; begin < end; begin++) {
        const number = this.ids.get(letters.slice(begin, end).join(""));
        if (number === undefined && end - begin > 1) continue;
        const total = best[begin].total + (number === undefined ? unknown : this.scores[number]);
        if (total > best[end].total) best[end] = { total, ids: [...best[begin].ids, number ?? UNK] };
      }
    }
    const ids = best[letters.length].ids;
    return ids.filter((number, place) => number !== UNK || ids[place - 1] !== UNK);
  }
}
