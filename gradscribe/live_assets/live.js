// SPDX-License-Identifier: Apache-2.0
// The live page: two read-only editors whose lines belong together, redrawn when the server says that a file has changed.
import {Decoration, EditorState, EditorView, GutterMarker, Prec, StateEffect, StateField, classHighlighter, codeFolding,
  defaultKeymap, drawSelection, foldGutter, foldKeymap, gutter, highlightActiveLine, hoverTooltip, keymap, lineNumbers,
  openSearchPanel, python, search, searchKeymap, syntaxHighlighting} from "./codemirror.js";

const by = id => document.getElementById(id);
const nonce = document.querySelector("meta[name=nonce]").content;
const embedded = window.parent !== window;

// --- a text, and what is known of its lines --------------------------------------------------------------------------

const setLit = StateEffect.define(), setWrong = StateEffect.define(), setHeat = StateEffect.define();

function marked(effect, name) {         // lines with a class, set by an effect with their numbers
  const mark = Decoration.line({class: name});
  return StateField.define({
    create: () => Decoration.none,
    update(value, transaction) {
      value = value.map(transaction.changes);
      for (const e of transaction.effects) if (e.is(effect)) {
        const doc = transaction.state.doc;
        const lines = [...e.value].filter(n => n >= 1 && n <= doc.lines).sort((a, b) => a - b);
        value = Decoration.set(lines.map(n => mark.range(doc.line(n).from)));
      }
      return value;
    },
    provide: field => EditorView.decorations.from(field),
  });
}

class Heat extends GutterMarker {
  constructor(share, text) { super(); this.share = share; this.text = text; }
  eq(other) { return this.share === other.share && this.text === other.text; }
  toDOM() {
    const box = document.createDocumentFragment(), bar = document.createElement("span");
    bar.className = "bar";
    bar.style.width = `${Math.round(100 * this.share)}%`;
    const time = document.createElement("span");
    time.className = "time";
    time.textContent = this.text;
    box.append(bar, time);
    return box;
  }
}

const heat = StateField.define({        // {line: Heat}
  create: () => new Map(),
  update(value, transaction) {
    for (const e of transaction.effects) if (e.is(setHeat)) value = e.value;
    return value;
  },
});

class Side {
  constructor(id, other) {
    this.id = id;
    this.number = n => String(n);       // the number that is shown before a line
    this.links = new Map();             // {line: Set of lines of the other side}
    this.other = other;
    if (other) other.other = this;
    this.view = new EditorView({parent: by(id), state: EditorState.create({doc: "", extensions: this.extensions()})});
  }

  extensions() {
    const go = () => this.jump();
    return [
      EditorView.cspNonce.of(nonce), EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({"aria-labelledby": `${this.id}-name`, "aria-readonly": "true", tabindex: "0"}),
      gutter({class: "cm-heat", lineMarker: (view, block) =>
        view.state.field(heat).get(view.state.doc.lineAt(block.from).number) ?? null,
        lineMarkerChange: update => update.transactions.some(t => t.effects.some(e => e.is(setHeat)))}),
      heat, lineNumbers({formatNumber: n => this.number(n)}),
      codeFolding(), foldGutter(), python(), syntaxHighlighting(classHighlighter), drawSelection(), highlightActiveLine(),
      marked(setLit, "lit"), marked(setWrong, "wrong"), search({top: true}),
      Prec.high(keymap.of([{key: "Enter", run: go}, {key: "F12", run: () => this.open()}])),
      keymap.of([...searchKeymap, ...foldKeymap, ...defaultKeymap]),
      hoverTooltip((view, pos) => this.tooltip(pos), {hoverTime: 250}),
      EditorView.domEventHandlers({
        mousemove: event => this.hover(event), mouseleave: () => show(held),
        dblclick: () => { this.open(); }, focus: () => this.caretMoved(),
      }),
      EditorView.updateListener.of(update => {
        if (update.selectionSet && update.view.hasFocus && !update.docChanged) this.caretMoved();
      }),
    ];
  }

  // Replaces what differs, so that the caret and the view stay where they are.
  fill(text) {
    const old = this.view.state.doc.toString();
    let start = 0, end = 0;
    const most = Math.min(old.length, text.length);
    while (start < most && old[start] === text[start]) start++;
    while (end < most - start && old[old.length - 1 - end] === text[text.length - 1 - end]) end++;
    if (old !== text) this.view.dispatch({
      changes: {from: start, to: old.length - end, insert: text.slice(start, text.length - end)}});
    this.view.requestMeasure();
  }

  line(n) { return this.view.state.doc.line(n).text; }
  caret() { return this.view.state.doc.lineAt(this.view.state.selection.main.head).number; }
  light(lines) {                        // only where they change: a redrawn line ends the wait for its tooltip
    const key = [...lines].join();
    if (key === this.lit) return;
    this.lit = key;
    this.view.dispatch({effects: setLit.of(lines)});
  }

  hover(event) {
    if (!event.target.closest(".cm-line")) return;
    const at = this.view.posAtCoords({x: event.clientX, y: event.clientY}, false);
    show({side: this, line: this.view.state.doc.lineAt(at).number});
  }

  caretMoved() {
    held = {side: this, line: this.caret()};
    show(held, true);
  }

  jump() {                              // to the first line of the other side that belongs to the caret's
    const to = Math.min(...this.links.get(this.caret()) ?? []);
    if (!Number.isFinite(to)) {
      tell(`${this.named(this.caret())} has no counterpart.`);
      return true;
    }
    const at = this.other.view.state.doc.line(to).from;
    this.other.view.focus();
    this.other.view.dispatch({selection: {anchor: at}, effects: EditorView.scrollIntoView(at, {y: "center"})});
    return true;
  }

  open() {                              // in the editor that shows this page
    const place = left.places?.[this.caret()];
    if (this !== left || !place) return false;
    if (embedded) window.parent.postMessage({gradscribe: "open", file: place.file, line: place.line}, "*");
    return embedded;
  }

  named(line) { return `Line ${this.number(line) || line} of ${this.name}`; }

  tooltip(pos) {
    const line = this.view.state.doc.lineAt(pos), text = describe(this, line.number);
    return text && {pos: line.from, end: line.to, above: true, create() {
      const dom = document.createElement("div");
      dom.className = "why";
      dom.textContent = text;
      return {dom};
    }};
  }
}

const left = new Side("left", null), right = new Side("right", left);
let held = null;                        // {side, line} of the caret

// --- which lines belong together -------------------------------------------------------------------------------------

function show(place, spoken = false) {
  if (!place) return;
  const {side, line} = place, others = side.links.get(line) ?? new Set();
  side.light(others.size ? [line] : []);
  side.other.light(others);
  if (!spoken) return;
  tell(describe(side, line) || `${side.named(line)} belongs to no line.`);
  const first = Math.min(...others);
  if (Number.isFinite(first)) side.other.view.dispatch({
    effects: EditorView.scrollIntoView(side.other.view.state.doc.line(first).from, {y: "nearest", yMargin: 40})});
}

function describe(side, line) {         // in words: what a line became or came from, why, and what it takes
  const others = [...side.links.get(line) ?? []].sort((a, b) => a - b), parts = [];
  if (side === left && others.length) parts.push(`${left.named(line)} became ${several(others)} of ${right.name}.`);
  if (side === right) {
    const link = right.known?.get(line);
    for (const p of link?.from ?? []) {
      const to = left.lineOf(p);
      parts.push(`${right.named(line)} comes from line ${p.line} of ${p.function}${to ? `: ${left.line(to).trim()}` : ""}`);
    }
    for (const why of link?.why ?? []) parts.push(why);
  }
  const time = side.times?.get(line);
  if (time) parts.push(`It takes ${spelled(time.seconds)}, ${percent(time.share)} of a call, in ${time.passes} ` +
    `pass${time.passes === 1 ? "" : "es"}.`);
  return parts.join("\n");
}

const several = lines => lines.length === 1 ? `line ${lines[0]}` :
  `lines ${lines.slice(0, -1).join(", ")} and ${lines[lines.length - 1]}`;

left.lineOf = place => left.at?.get(`${place.file}:${place.line}`);

// --- drawing a view --------------------------------------------------------------------------------------------------

function draw(view) {
  const places = [null], text = [], at = new Map();
  for (const [k, block] of view.left.blocks.entries()) {
    if (k) { text.push(""); places.push(null); }
    block.lines.forEach((line, n) => {
      text.push(line);
      places.push({file: block.file, line: block.start + n});
      at.set(`${block.file}:${block.start + n}`, places.length - 1);
    });
  }
  Object.assign(left, {places, at, name: view.left.name, number: n => String(places[n]?.line ?? "")});
  Object.assign(right, {name: view.right?.name ?? "the transformation", known: new Map(view.links.map(l => [l.line, l]))});
  link(view);
  left.fill(text.join("\n"));
  right.fill((view.right?.text ?? "").replace(/\n$/, ""));
  by("left-name").textContent = view.left.name;
  by("right-name").textContent = view.right ? view.right.name + (view.right.compiled ? ", as Numba compiles it" : "") :
    "no transformation";
  document.title = `${view.right?.name ?? view.left.name} - Gradscribe live`;
  by("error").textContent = view.error ? `${view.error.kind}: ${view.error.text}` : "";
  left.view.dispatch({effects: [setWrong.of((view.error?.places ?? []).map(left.lineOf).filter(Boolean))]});
  for (const side of [left, right]) side.light([]);
  drawTimes(view.times);
  if (held) {                           // the caret has moved with its text
    held.line = held.side.caret();
    show(held);
  }
  tell("");
}

function link(view) {
  left.links = new Map();
  right.links = new Map();
  for (const {line, from} of view.links) for (const p of from) {
    const to = left.lineOf(p);
    if (!to) continue;
    add(right.links, line, to);
    add(left.links, to, line);
  }
}

function add(map, key, value) {
  if (!map.has(key)) map.set(key, new Set());
  map.get(key).add(value);
}

function drawTimes(times) {
  const lines = times?.lines ?? [], total = Math.max(lines.reduce((sum, t) => Math.max(sum, t.seconds), 0), 1e-12);
  const sum = Math.max(lines.reduce((s, t) => s + t.seconds, 0), 1e-12);
  right.times = new Map(lines.map(t => [t.line, {...t, share: t.seconds / sum}]));
  left.times = new Map();               // of a line of the user's: of all lines that came from it first
  for (const [line, time] of right.times) {
    const place = right.known.get(line)?.from[0], to = place && left.lineOf(place);
    if (!to) continue;
    const known = left.times.get(to) ?? {seconds: 0, share: 0, passes: 0};
    left.times.set(to, {seconds: known.seconds + time.seconds, share: known.share + time.share,
      passes: Math.max(known.passes, time.passes)});
  }
  const most = Math.max(total, ...[...left.times.values()].map(t => t.seconds));
  for (const [side, top] of [[right, total], [left, most]]) side.view.dispatch({effects: setHeat.of(new Map(
    [...side.times].map(([line, t]) => [line, new Heat(t.seconds / top, spelled(t.seconds))])))});
  by("slowest").hidden = !times;
  by("whole").textContent = !times ? "" : times.error ?? (lines.length ?
    `A call takes ${spelled(times.seconds)}; with the clock between its lines ${spelled(sum)}. Medians of ${times.calls} calls.` :
    `A call takes ${spelled(times.seconds)}, median of ${times.calls} calls. Compiled code is timed as a whole.`);
  by("times").replaceChildren(...[...right.times.values()].sort((a, b) => b.seconds - a.seconds).slice(0, 12).map(row));
}

function row(time) {
  const tr = document.createElement("tr"), from = right.known.get(time.line)?.from[0];
  for (const text of [time.line, spelled(time.seconds), percent(time.share), time.passes, right.line(time.line).trim(),
    from ? `${from.function}:${from.line}` : ""]) {
    const td = document.createElement("td");
    td.textContent = text;
    tr.append(td);
  }
  return tr;
}

function spelled(seconds) {
  const [unit, by] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e3] : seconds >= 1e-6 ? ["µs", 1e6] : ["ns", 1e9];
  return `${(seconds * by).toPrecision(3).replace(/e\+\d+$/, "")} ${unit}`;
}

const percent = share => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;

// --- asking for views ------------------------------------------------------------------------------------------------

const tell = text => { by("told").textContent = text; };
const state = text => { by("state").textContent = text; };
let asked = 0;                          // the number of requests; only the last one's answer is drawn

async function ask() {
  const number = ++asked;
  const wanted = {number: Number(by("function").value || 0), recipe: by("recipe").value,
    arguments: by("arguments").value, timed: by("timed").checked};
  history.replaceState(null, "", `#${new URLSearchParams(wanted)}`);
  by("main").setAttribute("aria-busy", "true");
  const late = setTimeout(() => state(wanted.timed ? "Transforming and timing." : "Transforming."), 400);
  let view;
  try {
    const answer = await fetch("view", {method: "POST", headers: {"Content-Type": "application/json"},
      body: JSON.stringify(wanted)});
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    view = await answer.json();
  } catch (error) {
    if (number === asked) state(`No answer: ${error.message}. Has gradscribe live been stopped?`);
    return;
  } finally {
    clearTimeout(late);
  }
  if (number !== asked) return;
  if (view.left) {
    offer(view.offers, wanted.recipe);
    by("arguments").placeholder = view.arguments;
    draw(view);
  } else {
    by("error").textContent = view.error.text;
  }
  by("main").setAttribute("aria-busy", "false");
  state(view.error ? "There is an error." : [`${view.right.name} for ${view.given}.`,
    view.times && by("whole").textContent, view.count && `Saved ${view.count} time${view.count === 1 ? "" : "s"}.`]
    .filter(Boolean).join(" "));
}

function offer(recipes, chosen) {
  const all = recipes.includes(chosen) ? recipes : [chosen, ...recipes];
  by("offers").replaceChildren(...all.map(text => new Option(text, text, false, text === chosen)));
}

function connect() {
  let known = null;
  const events = new EventSource("events");
  events.onmessage = event => {
    if (known !== null && known !== event.data || by("state").dataset.lost) ask();
    delete by("state").dataset.lost;
    known = event.data;
  };
  events.onerror = () => {
    by("state").dataset.lost = "yes";
    state("Not connected. Has gradscribe live been stopped? The page tries again.");
  };
}

async function begin() {
  const first = await (await fetch("start")).json(), last = new URLSearchParams(location.hash.slice(1));
  by("function").replaceChildren(...first.names.map((name, k) => new Option(name, k)));
  by("functions").hidden = first.names.length < 2;
  by("function").value = first.names[last.get("number")] ? last.get("number") : "0";
  by("recipe").value = last.get("recipe") ?? first.recipe;
  by("arguments").value = last.get("arguments") ?? first.arguments;
  by("timed").checked = last.get("timed") === "true";
  by("form").addEventListener("submit", event => { event.preventDefault(); ask(); });
  by("offers").addEventListener("change", () => { by("recipe").value = by("offers").value; ask(); });
  by("function").addEventListener("change", () => { by("arguments").value = ""; ask(); });
  by("timed").addEventListener("change", ask);
  for (const side of [left, right])
    by(`${side.id}-search`).addEventListener("click", () => { side.view.focus(); openSearchPanel(side.view); });
  window.addEventListener("message", event => {         // the editor's caret has moved
    if (!embedded || event.source !== window.parent || event.data?.gradscribe !== "caret") return;
    const line = left.lineOf(event.data);
    if (line) show({side: left, line});
  });
  await ask();
  connect();
}

begin().catch(error => state(`The page cannot begin: ${error.message}.`));
