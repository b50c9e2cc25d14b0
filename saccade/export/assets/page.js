// The page: loads the model from its own blocks, and shows what it answers and where it looked.
const block = (id) => document.getElementById(id).textContent;

async function unpacked(id) {
  const text = atob(block(id));
  const packed = new Uint8Array(text.length);
  for (let place = 0; place < text.length; place++) packed[place] = text.charCodeAt(place);
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

async function load() {
  const about = JSON.parse(block("about"));
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.wasmBinary = (await unpacked("wasm")).buffer;
  const graphs = {};
  for (const name of Object.keys(about.graphs))
    graphs[name] = await ort.InferenceSession.create(await unpacked(name), { executionProviders: ["wasm"], logSeverityLevel: 3 });
  const [[role, input]] = Object.entries(about.inputs);
  const source = new Vocabulary(input.tokeniser);
  const target = about.task.target && new Vocabulary(about.task.target.tokeniser);
  return { about, graphs, role, source, target };
}

function read(model, text) {
  const encoded = model.source.encode(text), most = model.about.task.most;
  const ids = [...(most === null ? encoded : encoded.slice(0, most)), EOS];
  return { ids, keys: [...ids.slice(0, -1).map((n) => model.source.pieces[n]), NAMES[EOS]] };
}

// What each position of a text says, if the model copies: an id of the target, or of a word that it lacks.
function copied({ source, target }, text, length) {
  const extra = new Map();
  const said = source.units(text).flatMap(([unit, ids]) => {
    if (!target.ids.has(unit) && !extra.has(unit)) extra.set(unit, target.pieces.length + extra.size);
    return ids.map(() => target.ids.get(unit) ?? extra.get(unit));
  });
  return { said: [...said.slice(0, length - 1), EOS], extra: [...extra.keys()] };
}

// The names of positions, unknown words as the text spells them where it can be told.
function spelled({ source }, text, keys) {
  const parts = source.units(text).map(([unit]) => unit);
  return source.subwords ? keys : [...parts.slice(0, keys.length - 1), NAMES[EOS]];
}

async function write(model, text, options) {
  const { ids, keys } = read(model, text), target = model.target;
  if (ids.length === 1) return { answer: "", keys, queries: [], weights: [] };
  const { said, extra } = model.about.task.copying ? copied(model, text, ids.length) : {};
  const found = await searchText(model.graphs, model.about, ids, said, options);
  const queries = [...target.named(found.tokens, extra), ...(found.finished ? [NAMES[EOS]] : [])];
  const names = spelled(model, text, keys);
  const origins = model.about.ways.length ? found.origins.map((each) => ({ ...each, key: names[each.place] })) : null;
  return { answer: target.decode(found.tokens, extra), score: found.score, keys, queries, weights: found.looks, origins };
}

async function label(model, text) {
  const { ids, keys } = read(model, text), { about, role } = model;
  const out = await model.graphs.model.run({
    [role]: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
    [`${role}_mask`]: new ort.Tensor("bool", new Uint8Array(ids.length).fill(1), [1, ids.length]),
  });
  const logits = Array.from(out.logits.data);
  const { answer, score } = decided(about.task, logits);
  const weights = about.looks === null ? [] : [Array.from(out.looks.data)];
  return { answer, score, keys, queries: [answer], weights };
}

function decided(about, logits) {
  if (about.kind === "rating") return { answer: (logits[0] * about.deviation + about.mean).toPrecision(4) };
  let p = about.form === "one" ? logSoftmax(logits).map(Math.exp) : logits.map((x) => 1 / (1 + Math.exp(-x)));
  if (about.form === "ordered") {
    const edges = [1, ...p, 0];
    p = edges.slice(1).map((edge, place) => Math.max(edges[place] - edge, 0));
    const total = p.reduce((a, b) => a + b, 0);
    p = p.map((x) => x / total);
  }
  if (about.form === "several") {
    const chosen = about.labels.filter((_, place) => p[place] >= 0.5);
    return { answer: chosen.join(", ") || "(none)", score: Math.min(...p.map((x) => Math.max(x, 1 - x))) };
  }
  const best = p.indexOf(Math.max(...p));
  return { answer: about.labels[best], score: p[best] };
}

const shown = (piece) => (piece === " " ? "␣" : piece.replaceAll(SPACE, "").replaceAll(JOINER, "") || piece);

function cell(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

// Where a word came from: the position is named beside its row.
function cameFrom({ way, share, place, key }) {
  const how = way === "copy" ? "copied from" : `${way}, from`;
  const made = cell("td", place === null ? "" : `${how} ${place + 1} (${shown(key)})`, "origin");
  made.title = `${way}: ${(100 * share).toFixed(0)} % of its probability`;
  Object.assign(made.dataset, { way, share: share.toFixed(4), place: place ?? "" });
  return made;
}

function draw({ keys, queries, weights, origins }) {
  const table = document.getElementById("weights");
  table.replaceChildren();
  if (!weights.length) return;
  const head = table.createTHead().insertRow();
  head.append(cell("td", ""), ...keys.map((key) => cell("th", shown(key))));
  const body = table.createTBody();
  queries.forEach((query, place) => {
    const line = body.insertRow();
    line.append(cell("th", shown(query)));
    weights[place].slice(0, keys.length).forEach((weight, key) => {
      const made = cell("td", "", "weight");
      made.style.setProperty("--weight", weight.toFixed(4));
      made.dataset.weight = weight.toFixed(4);
      made.title = `${shown(query)} ← ${shown(keys[key])}: ${weight.toFixed(4)}`;
      made.classList.toggle("used", origins?.[place].place === key);
      line.append(made);
    });
    if (origins) line.append(cameFrom(origins[place]));
  });
}

async function main() {
  const status = document.getElementById("status");
  const input = document.getElementById("input");
  const model = await load();
  const writes = model.about.task.kind === "generation";
  document.getElementById("search").hidden = !writes;
  status.textContent = "Ready. Everything runs in this page; nothing is sent.";
  let last = 0, running = Promise.resolve();
  const answer = () => {
    const mine = ++last;
    running = running.then(async () => {
      if (mine !== last) return;
      const beam = Number(document.getElementById("beam").value);
      const began = performance.now();
      const text = input.value, output = document.getElementById("answer");
      try {
        const found = await (writes ? write : label)(model, text, { beam });
        output.textContent = found.answer;
        output.dataset.input = text;
        draw(found);
        const score = found.score === undefined ? "" : `score ${found.score.toFixed(4)}, `;
        status.textContent = `${score}${(performance.now() - began).toFixed(0)} ms`;
      } catch (error) {
        status.textContent = `The model could not answer: ${error.message}`;
      }
    });
  };
  document.getElementById("ask").addEventListener("submit", (event) => { event.preventDefault(); answer(); });
  input.addEventListener("input", answer);
  document.getElementById("beam").addEventListener("change", answer);
  input.disabled = false;
  if (input.value) answer();
}

main().catch((error) => { document.getElementById("status").textContent = `The page could not start: ${error.message}`; });
