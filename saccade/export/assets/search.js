// Beam search over the two graphs of a model that writes texts; a beam of 1 is greedy.
const divisor = (steps, penalty) => ((5 + steps) / 6) ** penalty;

function logSoftmax(logits) {
  const most = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = Math.log(logits.reduce((sum, x) => sum + Math.exp(x - most), 0)) + most;
  return Array.from(logits, (x) => x - total);
}

function chosenRows(tensor, rows) {
  const each = tensor.dims.slice(1).reduce((a, b) => a * b, 1);
  const data = new tensor.data.constructor(rows.length * each);
  rows.forEach((row, place) => data.set(tensor.data.subarray(row * each, (row + 1) * each), place * each));
  return new ort.Tensor(tensor.type, data, [rows.length, ...tensor.dims.slice(1)]);
}

const row = (tensor, number) => {
  const size = tensor.dims[1];
  return tensor.data.subarray(number * size, (number + 1) * size);
};

const integers = (ids) => new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]);

// The way that contributed most to a token, its share of the probability, and the position that it used, if any.
function originOf(out, words, positions, number, token, logProb) {
  let best = { way: "generate", share: 1, place: null };
  const others = Object.entries(words).map(([way, said]) => {
    const found = { way, share: 0, place: null }, logProbs = row(out[`${way}_log_probs`], number);
    let highest = -1e29;
    logProbs.forEach((entry, place) => {
      if (Number(said[place]) !== token) return;
      found.share += Math.exp(entry - logProb);
      if (entry > highest) [highest, found.place] = [entry, Math.floor(place / (logProbs.length / positions))];
    });
    found.share = Math.min(1, found.share);
    return found;
  });
  best.share = Math.max(0, 1 - others.reduce((sum, each) => sum + each.share, 0));
  for (const each of others) if (each.share > best.share) best = each;
  return best;
}

async function searchText(graphs, about, ids, said, { beam = 5, lengthPenalty = 0.6 } = {}) {
  const feed = {
    source: integers(ids),
    source_mask: new ort.Tensor("bool", new Uint8Array(ids.length).fill(1), [1, ids.length]),
    ...(said && { source_words: integers(said) }),
  };
  let out = await graphs.encoder.run(feed);
  let state = Object.fromEntries(about.state.map((name) => [name, out[name]]));
  const words = Object.fromEntries(about.ways.map((way) => [way, row(out[`${way}_words`], 0)]));
  const { ratio, longest, limit: most, written } = about.task;
  const wanted = 2 * Math.ceil(Math.fround(Math.fround(ratio) * ids.length)) + 10;
  const suggested = Math.min(Math.max(wanted, longest + 10), most);
  const limit = written === null ? suggested : Math.min(suggested, written);
  let live = [{ total: 0, tokens: [], looks: [], origins: [] }];
  const ended = [];
  for (let step = 0; ; step++) {
    const candidates = [];
    live.forEach((hypothesis, number) => {
      row(out.log_probs, number).forEach((logProb, token) => {
        if (token !== PAD && token !== BOS) candidates.push([hypothesis.total + logProb, number, token, logProb]);
      });
    });
    candidates.sort((a, b) => b[0] - a[0]);
    const grown = [];
    candidates.slice(0, 2 * beam).forEach(([total, number, token, logProb], rank) => {
      const looks = out.weights ? [...live[number].looks, Array.from(row(out.weights, number))] : [];
      if (total === -Infinity) return;
      const origins = [...live[number].origins, originOf(out, words, ids.length, number, token, logProb)];
      if (token !== EOS && grown.length < beam)
        grown.push({ total, tokens: [...live[number].tokens, token], looks, origins, number, token });
      else if (token === EOS && rank < beam) {
        const score = total / divisor(step + 1, lengthPenalty);
        ended.push({ finished: true, score, tokens: live[number].tokens, looks, origins });
      }
    });
    const stopped = limit <= step;
    if (stopped && !ended.length)
      for (const h of live) ended.push({ ...h, finished: false, score: h.total / divisor(step, lengthPenalty) });
    const best = Math.max(-Infinity, ...ended.map((e) => e.score));
    const enough = ended.length >= beam;
    const bound = enough && beam === 1 ? -Infinity
      : (grown.length ? grown[0].total : -Infinity) / divisor(enough ? step + 2 : limit + 1, lengthPenalty);
    if (stopped || !grown.length || (ended.length && best >= bound)) break;
    const rows = grown.map((g) => g.number);
    state = Object.fromEntries(Object.entries(state).map(([name, tensor]) => [name, chosenRows(tensor, rows)]));
    const tokens = new ort.Tensor("int64", BigInt64Array.from(grown.map((g) => BigInt(g.token))), [grown.length]);
    live = grown;
    out = await graphs.decoder.run({ ...state, tokens });
    for (const name of about.changed) state[name] = out[`next_${name}`];
  }
  return ended.sort((a, b) => b.score - a.score)[0];
}
