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
  const texts = Object.fromEntries(Object.entries(about.vocabularies).map(([role, saved]) => [role, new Vocabulary(saved)]));
  return { about, graphs, texts };
}

async function write({ about, graphs, texts }, text, options) {
  const ids = [...texts.source.encode(text).slice(0, about.reads), EOS];
  const keys = [...ids.slice(0, -1).map((n) => texts.source.pieces[n]), NAMES[EOS]];
  if (ids.length === 1) return { answer: "", keys, queries: [], weights: [] };
  const found = await searchText(graphs, about, ids, options);
  const queries = [...found.tokens.map((n) => texts.target.pieces[n]), ...(found.finished ? [NAMES[EOS]] : [])];
  return { answer: texts.target.decode(found.tokens), score: found.score, keys, queries, weights: found.looks };
}

async function label({ about, graphs, texts }, text) {
  const [[role, vocabulary]] = Object.entries(texts);
  const encoded = vocabulary.encode(text);
  const ids = [...(about.reads === null ? encoded : encoded.slice(0, about.reads)), EOS];
  const out = await graphs.model.run({
    [role]: new ort.Tensor("int64", BigInt64Array.from(ids, BigInt), [1, ids.length]),
    [`${role}_mask`]: new ort.Tensor("bool", new Uint8Array(ids.length).fill(1), [1, ids.length]),
  });
  const logits = Array.from(out.logits.data);
  const keys = [...ids.slice(0, -1).map((n) => vocabulary.pieces[n]), NAMES[EOS]];
  const { answer, score } = decided(about, logits);
  const looked = about.looks === null ? null : out[about.looks];
  const weights = looked === null ? [] : [mean(looked)];
  return { answer, score, keys, queries: [answer], weights };
}

function decided(about, logits) {
  if (about.task === "rating") return { answer: (logits[0] * about.deviation + about.mean).toPrecision(4) };
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

function mean({ data, dims }) {
  const keys = dims[3], rows = dims[1] * dims[2];
  return Array.from({ length: keys }, (_, key) => {
    let total = 0;
    for (let r = 0; r < rows; r++) total += data[r * keys + key];
    return total / rows;
  });
}

const shown = (piece) => (piece === " " ? "␣" : piece.replaceAll(SPACE, "").replaceAll(JOINER, "") || piece);

function cell(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function draw({ keys, queries, weights }) {
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
      line.append(made);
    });
  });
}

async function main() {
  const status = document.getElementById("status");
  const input = document.getElementById("input");
  const model = await load();
  const writes = model.about.task === "generation";
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
