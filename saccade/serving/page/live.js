// The live page: an input goes to the server, and the answer is drawn as it is written.
// Everything that comes from the server or a user is set as text, never as HTML.
"use strict";

const find = (id) => document.getElementById(id);
const make = (name, text = "", className = "") => {
  const node = document.createElement(name);
  node.textContent = text;
  if (className) node.className = className;
  return node;
};
let models = {};
let running = null;

function headers() {
  const token = find("token").value;
  return { "content-type": "application/json", ...(token ? { authorization: `Bearer ${token}` } : {}) };
}

function say(text, bad = false) {
  find("state").textContent = text;
  find("state").dataset.bad = String(bad);
}

async function problem(response) {
  if (response.status === 401) find("locked").hidden = false;
  let detail = "";
  try {
    const found = (await response.json()).detail;
    detail = typeof found === "string" ? found : found.map((each) => `${each.loc.slice(1).join(".")}: ${each.msg}`).join("; ");
  } catch {
    detail = response.statusText;
  }
  return new Error(`${response.status}: ${detail}`);
}

async function begin() {
  const response = await fetch("info", { headers: headers() });
  if (!response.ok) throw await problem(response);
  models = (await response.json()).models;
  const names = Object.keys(models);
  find("model").replaceChildren(...names.map((name) => new Option(name, name)));
  find("choice").hidden = names.length < 2;
  showInputs();
  say("");
}

function showInputs() {
  const about = models[find("model").value];
  find("inputs").replaceChildren(
    ...Object.entries(about.inputs).map(([role, { files, optional }]) =>
      files.length ? fileInput(role, files, !optional) : textInput(role, !optional),
    ),
  );
}

function textInput(role, required) {
  const label = make("label", "", "input");
  const area = make("textarea");
  area.name = role;
  area.required = required;
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) find("form").requestSubmit();
  });
  label.append(make("span", role), area);
  return label;
}

function fileInput(role, files, required) {
  const label = make("label", "", "input drop");
  const input = make("input");
  input.type = "file";
  input.name = role;
  input.accept = files.join(",");
  input.required = required;
  label.append(make("span", `${role}: drop a file here (${files.join(", ")}), or choose one`), input);
  const over = (on) => (event) => {
    event.preventDefault();
    label.dataset.over = String(on);
  };
  label.addEventListener("dragover", over(true));
  label.addEventListener("dragleave", over(false));
  label.addEventListener("drop", (event) => {
    over(false)(event);
    input.files = event.dataTransfer.files;
    find("form").requestSubmit();
  });
  return label;
}

async function given() {
  const inputs = {};
  for (const field of find("inputs").querySelectorAll("[name]")) {
    const missing = !field.required && !field.value; // of an input that may be
    inputs[field.name] = missing ? null : field.type === "file" ? await contents(field.files[0]) : field.value;
  }
  const values = Object.values(inputs);
  return values.length === 1 ? values[0] : inputs;
}

function contents(file) {
  return new Promise((resolve, reject) => {
    if (!file) return reject(new Error("Choose a file first."));
    const reader = new FileReader();
    reader.onload = () => resolve({ base64: String(reader.result).split(",", 2)[1] ?? "", name: file.name });
    reader.onerror = () => reject(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
}

async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value;
    let end;
    while ((end = buffer.indexOf("\n\n")) >= 0) {
      const lines = buffer.slice(0, end).split("\n");
      buffer = buffer.slice(end + 2);
      const read = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      yield { kind: read("event"), data: JSON.parse(read("data")) };
    }
  }
}

async function ask(event) {
  event.preventDefault();
  running?.abort();
  const own = (running = new AbortController());
  find("page").hidden = true;
  say("…");
  try {
    const body = JSON.stringify({ input: await given(), model: find("model").value });
    const started = performance.now();
    const response = await fetch("stream", { method: "POST", headers: headers(), body, signal: own.signal });
    if (!response.ok) throw await problem(response);
    start();
    for await (const { kind, data } of events(response)) {
      if (kind === "token") addToken(data);
      else if (kind === "answer") finish(data, performance.now() - started);
      else throw new Error(data.detail);
    }
  } catch (error) {
    if (!own.signal.aborted) say(error.message, true);
  }
}

function start() {
  find("result").hidden = false;
  find("answer").textContent = "";
  find("warnings").hidden = true;
  find("outcomes").replaceChildren();
  find("weights").replaceChildren(make("thead"), make("tbody"));
}

function addToken({ token, text, weights }) {
  find("answer").textContent = text;
  if (weights.length) find("weights").tBodies[0].append(row(token, weights));
}

// Where a copying model took a word from, in a few words; "" for one of its vocabulary.
function source(origin) {
  if (origin?.position === undefined) return "";
  const how = origin.from === "copy" ? "copied from" : `${origin.from}, from`;
  const place = origin.word === null ? `position ${origin.position + 1}` : `word ${origin.word + 1}`;
  return `${how} ${place} (${origin.key.replaceAll("▁", "")})`;
}

function row(name, weights, origin) {
  const line = make("tr");
  line.append(make("th", name.replaceAll("▁", " ")));
  for (const weight of weights) {
    const cell = make("td");
    cell.style.setProperty("--w", String(weight));
    cell.title = weight.toFixed(3);
    line.append(cell);
  }
  if (origin) line.append(make("th", source(origin), "origin"));
  return line;
}

function finish(found, milliseconds) {
  const best = found.nbest?.[0] ?? found;
  const value = best.answer;
  find("answer").textContent = Array.isArray(value) ? value.join(", ") || "(none)" : String(value ?? "(none)");
  find("warnings").textContent = (found.warnings ?? []).join(" ");
  find("warnings").hidden = !found.warnings;
  const likely = Object.entries(found.probabilities ?? {}).sort((a, b) => b[1] - a[1]).slice(0, 8);
  find("outcomes").replaceChildren(
    ...likely.map(([name, p]) => {
      const line = make("div", "", "outcome");
      const meter = make("meter");
      meter.value = p;
      line.append(make("span", name), meter, make("span", p.toFixed(3)));
      return line;
    }),
  );
  const keys = best.keys ?? found.keys;
  const shown = Boolean(keys && best.weights?.length);
  for (const id of ["looked", "hint", "weights"]) find(id).hidden = !shown;
  if (shown) {
    const head = make("thead");
    const line = make("tr");
    line.append(make("th"), ...keys.map((key) => make("th", key.replaceAll("▁", " "))));
    head.append(line);
    const body = make("tbody");
    body.append(...best.weights.map((weights, step) => row(best.queries[step] ?? "", weights, best.origins?.[step])));
    find("weights").replaceChildren(head, body);
  }
  say(`${Math.round(milliseconds)} ms`);
}

async function explain() {
  say("…");
  try {
    const body = JSON.stringify({ input: await given(), model: find("model").value, format: "html" });
    const response = await fetch("explain", { method: "POST", headers: headers(), body });
    if (!response.ok) throw await problem(response);
    find("page").srcdoc = await response.text();
    find("page").hidden = false;
    say("");
  } catch (error) {
    say(error.message, true);
  }
}

find("form").addEventListener("submit", ask);
find("explain").addEventListener("click", explain);
find("model").addEventListener("change", showInputs);
find("token").addEventListener("change", () => begin().catch((error) => say(error.message, true)));
begin().catch((error) => say(error.message, true));
