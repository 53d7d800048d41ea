"use strict";
(() => {
const $ = (id) => document.getElementById(id);
const data = JSON.parse($("play-data").textContent);

// ---- the controller ---------------------------------------------------------------------------------

const number = (x) => (typeof x === "string" ? Number(x.replace("inf", "Infinity")) : x);
const numbers = (x) => (Array.isArray(x) ? x.map(numbers) : number(x));

const inputs = data.inputs.map((one) => one.name);
const dims = inputs.length;

/** The rules and laws of a file in JSON, with its numbers as numbers. */
function read({controller, arrays}) {
  const {feature, left, right, leaf, threshold} = structuredClone(arrays), offset = numbers(arrays["laws.offset"]);
  return {
    actions: controller.actions,
    nodes: {feature, left, right, leaf, threshold: numbers(threshold)},
    laws: {offset, gain: numbers(arrays["laws.gain"] ?? offset.map((row) => row.map(() => inputs.map(() => 0))))},
    combinations: numbers(arrays.combinations ?? []),
    locked: arrays["locks.row"],
  };
}

const original = read(data.file);
let tree = read(data.file);
const listed = data.actionSpace.kind === "discrete";
const first = listed ? data.actionSpace.start : 0;
const single = !listed && data.actionSpace.dtype === "float32";
const [lowest, highest] = listed ? [[], []] : [data.actionSpace.low, data.actionSpace.high].map((ends) => numbers(ends).flat());

/** Every way from the root to a leaf: nodes with several parents are written out for each. */
const places = [];
let leafCount = 0;
(function write(node, parent, lower) {
  const at = places.length, place = {node, parent, lower, left: -1, right: -1, leaf: 0};
  places.push(place);
  if (tree.nodes.feature[node] < 0) { place.leaf = ++leafCount; return at; }
  place.left = write(tree.nodes.left[node], at, true);
  place.right = write(tree.nodes.right[node], at, false);
  return at;
})(0, -1, false);

/** Of rules that are their own mirror image one half is shown: the other has its leaves' numbers, and follows edits. */
const mirror = data.mirror;
if (mirror) {
  leafCount = 0;
  (function pair(below, above) {
    const place = places[above], other = places[below];
    other.shown = above;
    if (place.leaf) { place.leaf = other.leaf = ++leafCount; return; }
    const j = tree.nodes.feature[place.node], turned = j < inputs.length && mirror.images[j][1] < 0;
    pair(turned ? other.right : other.left, place.left);
    pair(turned ? other.left : other.right, place.right);
  })(places[0].left, places[0].right);
}

/** The number after x. */
function above(x) {
  if (x === 0) return Number.MIN_VALUE;
  const number = new Float64Array([x]), bits = new BigInt64Array(number.buffer);
  bits[0] += x > 0 ? 1n : -1n;
  return number[0];
}

/** Write the other half anew. */
function reflect() {
  if (!mirror) return;
  const {nodes, laws: {gain, offset}, combinations} = tree;
  for (let node = 1; node <= mirror.nodes; node++) {
    const j = nodes.feature[node + mirror.nodes], cut = nodes.threshold[node + mirror.nodes];
    nodes.threshold[node] = j < inputs.length && j >= 0 && mirror.images[j][1] < 0 ? above(-cut) : cut;
  }
  for (let row = 0; row < mirror.laws; row++) offset[row].forEach((c, k) => {
    const image = row + mirror.laws, sign = listed ? 1 : mirror.signs[k];
    if (listed) offset[image][mirror.actions[k]] = c;
    else offset[image][k] = mirror.middle[k] + sign * (c - mirror.middle[k]) + 0;
    mirror.images.forEach(([other, turn], j) => { gain[image][k][other] = turn * sign * gain[row][k][j] + 0; });
  });
  for (let s = 0; s < mirror.sums; s++) mirror.images.forEach(([other, turn], j) => { combinations[s + mirror.sums][other] = turn * combinations[s][j] + 0; });
}

/** offset + gain · seen, added in order, without gains of 0: to the last bit as in Python. */
function affine(offset, gain, seen) {
  let total = offset;
  for (let j = 0; j < gain.length; j++) if (gain[j] !== 0) total += gain[j] * seen[j];
  return total;
}

/** The place of the leaf for an observation. */
function find(seen, its = tree) {
  const {feature, threshold} = its.nodes;
  let at = 0;
  while (places[at].leaf === 0) {
    const node = places[at].node, j = feature[node];
    const value = j < dims ? seen[j] : affine(0, its.combinations[j - dims], seen);
    at = value < threshold[node] ? places[at].left : places[at].right;
  }
  return at;
}

/** What a law does: the number of an action of a list in an array, or the numbers of an action. */
function lawAction(row, seen, its = tree) {
  const sums = its.laws.offset[row].map((offset, k) => affine(offset, its.laws.gain[row][k], seen));
  if (listed) {
    let best = 0, most = -1e300;
    sums.forEach((score, k) => { if (score > most) { most = score; best = k; } });
    return [first + best];
  }
  return sums.map((sum, k) => {
    let u = sum;
    if (u < lowest[k]) u = lowest[k];
    if (u > highest[k]) u = highest[k];
    if (Number.isNaN(u)) u = data.file.safe_action[k];
    return single ? Math.fround(u) : u;
  });
}

/** Whether a law is the same for all inputs. */
const constant = (row, its = tree) => its.laws.gain[row].every((gains) => gains.every((gain) => gain === 0));

/** The class of a controller with features or memory, as it is exported; null for any other. */
const Controller = /*CONTROLLER*/null;
/** The nodes of the program of that class are places in this order. */
const order = [0];
for (const at of order) if (!places[at].leaf) order.push(places[at].left, places[at].right);

/** Where in a tree the numbers of that class are: names of properties, and functions that read them. */
const adjustable = Controller === null ? [] : Object.keys(new Controller()).filter((name) => name.startsWith("tree$")).map((name) => {
  const [i, k, j] = name.match(/\d+/g).map(Number), {node, leaf} = places[order[i]], row = tree.nodes.leaf[node], compared = tree.nodes.feature[node];
  if (!leaf && j === 0) return [name, (its) => its.nodes.threshold[node]];
  if (!leaf) return [name, (its) => (compared < dims ? Number(compared === j - 1) : its.combinations[compared - dims][j - 1])];
  return [name, (its) => (j === 0 ? its.laws.offset[row][k] : its.laws.gain[row][k][j - 1])];
});

/** What that class remembers before the first sample; null without one. */
function fresh(its = tree) {
  if (Controller === null) return null;
  const memory = new Controller();
  for (const [name, of] of adjustable) memory[name] = of(its);
  return memory;
}
const copied = (memory) => memory && Object.assign(Object.create(Controller.prototype), memory);

/** What is done for an observation, at which place, and what the tree was given; a memory is updated. */
function decide(seen, memory, its = tree) {
  if (memory === null) {
    const at = find(seen, its);
    return {at, action: lawAction(its.nodes.leaf[places[at].node], seen, its), given: seen};
  }
  const made = memory.act(seen), wide = listed ? 1 : lowest.length, action = made.slice(0, wide);
  return {at: order[memory.leaf], action: single ? action.map(Math.fround) : action, given: made.slice(wide)};
}

// ---- the plant ----------------------------------------------------------------------------------------

/** A plant of affine laws in cells, as PlanTree learns it; its state is the observation. */
function learnedPlant(plant) {
  const go = (feature, threshold, left, right, x, score) => {
    let node = 0;
    while (feature[node] >= 0) {
      const value = feature[node] === x.length ? score : x[feature[node]];
      node = value < threshold[node] ? left[node] : right[node];
    }
    return node;
  };
  const quadratic = (weights, x) => {
    if (!weights.length) return 0;
    let total = weights[0], term = 1 + x.length;
    for (let i = 0; i < x.length; i++) {
      total += weights[1 + i] * x[i];
      for (let j = i; j < x.length; j++) total += weights[term++] * x[i] * x[j];
    }
    return total;
  };
  const inputs = (a) => plant.listed ? Array.from({length: plant.n}, (_, k) => (k === a[0] ? 1 : 0))
    : [...a, ...a.map((u) => u * u)];
  function step(s, a) {
    const cell = plant.cell[go(plant.feature, plant.threshold, plant.left, plant.right, s, 0)], u = inputs(a);
    const made = plant.law[cell].map((law) => {
      let value = law[0];
      for (let j = 0; j < s.length; j++) value += law[1 + j] * s[j];
      for (let j = 0; j < u.length; j++) value += law[1 + s.length + j] * u[j];
      return value;
    });
    const after = made.slice(0, -1);
    for (let k = 0; k < after.length; k++) {
      let along = 0;
      for (let j = 0; j < after.length; j++)
        along += plant.axes[cell][k][j] * ((after[j] - plant.centre[cell][j]) / plant.scale[j]);
      const over = along - Math.min(Math.max(along, plant.low[cell][k]), plant.high[cell][k]);
      if (over !== 0) for (let j = 0; j < after.length; j++) after[j] -= over * plant.axes[cell][k][j] * plant.scale[j];
    }
    const reward = Math.min(Math.max(made[made.length - 1], plant.rewards[0]), plant.rewards[1]);
    const end = go(plant.end_feature, plant.end_threshold, plant.end_left, plant.end_right, after,
      quadratic(plant.end_score, after));
    const ended = plant.end_chance[end] > 0.5;
    const cut = after.map((x, j) => Math.min(Math.max(x, plant.seen_low[j] ?? -Infinity), plant.seen_high[j] ?? Infinity));
    return [...cut, ended ? plant.rewards[2] : reward, ended ? 1 : 0];
  }
  return {step, observe: (s) => s};
}

const plant = /*PLANT*/null;
const n = data.starts[0].length, shownStates = data.states.length;
const float32 = data.observationSpace.dtype === "float32";
const observe = (state) => { const seen = plant.observe(state); return float32 ? seen.map(Math.fround) : seen; };

/** A state at a step of a plan: its set-points and its load are numbers of the state. */
function directed(state, t, plan) {
  const made = state.slice();
  plan.goals.forEach(([before, after], k) => { made[data.plan.places[k]] = t < plan.steps[k] ? before : after; });
  made[data.plan.loadPlace] = plan.begins; made[data.plan.loadPlace + 1] = plan.load;
  return made;
}

/** An episode: states, what was done in each and at which place, and the return; by a plan, its set-points and load. */
function rollout(start, its = tree, plan = null) {
  const path = {states: [], places: [], actions: [], given: [], memories: [], total: 0, ended: false, lost: false}, memory = fresh(its);
  const steps = plan ? data.plan.samples : data.horizon;
  let state = plan ? directed(start, 0, plan) : start;
  path.states.push(state);
  for (let t = 0; t < steps; t++) {
    const kept = copied(memory), {at, action, given} = decide(observe(state), memory, its);
    const made = plant.step(state, listed ? [action[0] - first] : action);
    let after = made.slice(0, n);
    if (!after.every(Number.isFinite) || !Number.isFinite(made[n])) { path.lost = true; break; }
    if (plan) after = directed(after, t + 1, plan);
    path.places.push(at); path.actions.push(action); path.given.push(given); path.memories.push(kept); path.total += made[n];
    path.states.push(after);
    state = after;
    if (made[n + 1]) { path.ended = true; break; }
  }
  path.memories.push(memory);
  return path;
}

// ---- the view -------------------------------------------------------------------------------------------

const view = {start: (data.plan ? data.plan.first : data.starts[0]).slice(), t: 0, playing: false, axes: data.axes.slice(),
  shows: data.plan ? "response" : "action", output: 0, chosen: 0, path: null, first: null, fixed: [], before: [],
  plan: data.plan && {goals: structuredClone(data.plan.goals), steps: data.plan.steps.slice(), begins: data.plan.begins, load: data.plan.load}};
const plain = (name) => name.replace(/ \[.*\]$/, "");
const unit = (name) => (/ \[(.*)\]$/.exec(name) || ["", ""])[1];
/** The unit in which times are shown, s, min or h, and its length in seconds. */
const timeUnit = (seconds) => (seconds < 120 ? [1, "s"] : seconds < 7200 ? [60, "min"] : [3600, "h"]);
const short = (x, digits = 3) => (x === 0 ? "0" : String(Number(x.toPrecision(digits)))).replace("-", "−");
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#8C6BB1", "#7F7F7F", "#A6761D"];
const colour = (k) => PALETTE[k % PALETTE.length];
const rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));

/** The colour of an action: of a list its own; of numbers between two, with a pale middle for both signs. */
function actionColour(action) {
  if (listed) return rgb(colour(action[0] - first));
  const k = view.output, [low, high] = [lowest[k], highest[k]];
  const ends = [rgb("#B35806"), rgb(css("--middle")), rgb("#542788")], far = Math.max(-low, high);
  const share = low < 0 && high > 0 ? action[k] / far : 2 * (action[k] - low) / (high - low) - 1;
  const to = share < 0 ? ends[0] : ends[2], much = Math.min(1, Math.abs(share));
  return ends[1].map((x, i) => x + (to[i] - x) * much);
}

function actionText(action) {
  if (listed) return tree.actions[action[0] - first];
  return action.map((u, k) => `${plain(tree.actions[k])} ${short(u)} ${unit(tree.actions[k])}`.trim()).join(", ");
}

const wrapped = (x, j) => (data.turns[j] ? x - 2 * Math.PI * Math.round(x / (2 * Math.PI)) : x);
const now = () => view.path.states[Math.min(view.t, view.path.states.length - 1)];
/** What is done at the moment. */
function present() {
  const {path, t} = view;
  if (t < path.actions.length) return {at: path.places[t], action: path.actions[t], given: path.given[t]};
  return decide(observe(now()), copied(path.memories[path.memories.length - 1]));
}

function fitted(canvas, ratio) {
  const width = canvas.clientWidth || 300, height = Math.round(width * ratio), dense = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * dense) || canvas.height !== Math.round(height * dense)) {
    canvas.width = Math.round(width * dense); canvas.height = Math.round(height * dense);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(dense, 0, 0, dense, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return [pen, width, height];
}

function ticks(low, high, most = 5) {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * power).find((k) => k >= raw);
  const found = [];
  for (let x = Math.ceil(low / step) * step; x <= high + 1e-9 * step; x += step) found.push(Math.abs(x) < 1e-9 * step ? 0 : x);
  return found;
}

// ---- the map --------------------------------------------------------------------------------------------

const CELLS = 110;
const picture = document.createElement("canvas");
picture.width = picture.height = CELLS;
const frame = {left: 48, right: 10, top: 8, bottom: 40};

function mapFrame(width, height) {
  const [i, j] = view.axes, w = width - frame.left - frame.right, h = height - frame.top - frame.bottom;
  return {
    w, h,
    x: (v) => frame.left + (v - data.low[i]) / (data.high[i] - data.low[i]) * w,
    y: (v) => frame.top + h - (v - data.low[j]) / (data.high[j] - data.low[j]) * h,
    back: (px, py) => [data.low[i] + (px - frame.left) / w * (data.high[i] - data.low[i]),
      data.low[j] + (frame.top + h - py) / h * (data.high[j] - data.low[j])],
  };
}

function paintCells() {
  const pen = picture.getContext("2d"), image = pen.createImageData(CELLS, CELLS), [i, j] = view.axes;
  const state = now().slice(), leaf = new Int32Array(CELLS * CELLS);
  const memory = view.path.memories[Math.min(view.t, view.path.memories.length - 1)];
  for (let row = 0; row < CELLS; row++) {
    state[j] = data.high[j] - (row + 0.5) / CELLS * (data.high[j] - data.low[j]);
    for (let column = 0; column < CELLS; column++) {
      state[i] = data.low[i] + (column + 0.5) / CELLS * (data.high[i] - data.low[i]);
      const {at, action} = decide(observe(state), copied(memory)), place = row * CELLS + column;
      leaf[place] = places[at].leaf;
      const c = view.shows === "leaf" ? rgb(colour(places[at].leaf - 1)) : actionColour(action);
      const edge = (column && leaf[place - 1] !== leaf[place]) || (row && leaf[place - CELLS] !== leaf[place]);
      for (let k = 0; k < 3; k++) image.data[4 * place + k] = edge ? c[k] * 0.55 : c[k];
      image.data[4 * place + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
}

const AHEAD = 120;
/** Draw a trajectory for some steps: one that goes on for long would cover the map. */
function line(pen, at, states, from = 0) {
  const [i, j] = view.axes;
  pen.beginPath();
  let before = null;
  for (let t = from; t < Math.min(states.length, from + AHEAD); t++) {
    const [a, b] = [wrapped(states[t][i], i), wrapped(states[t][j], j)];
    const jump = before && ((data.turns[i] && Math.abs(a - before[0]) > Math.PI) || (data.turns[j] && Math.abs(b - before[1]) > Math.PI));
    if (!before || jump) pen.moveTo(at.x(a), at.y(b)); else pen.lineTo(at.x(a), at.y(b));
    before = [a, b];
  }
  pen.stroke();
}

function drawMap() {
  if (view.shows === "response") { drawResponse(); return; }
  const canvas = $("map"), [pen, width, height] = fitted(canvas, 0.86), at = mapFrame(width, height), [i, j] = view.axes;
  paintCells();
  pen.imageSmoothingEnabled = false;
  pen.drawImage(picture, frame.left, frame.top, at.w, at.h);
  pen.save();
  pen.beginPath(); pen.rect(frame.left, frame.top, at.w, at.h); pen.clip();
  pen.lineJoin = "round";
  for (const one of view.fixed) {
    pen.strokeStyle = "rgba(0,0,0,.5)"; pen.lineWidth = 1.8; line(pen, at, one.states);
    pen.strokeStyle = "rgba(255,255,255,.55)"; pen.lineWidth = 0.9; line(pen, at, one.states);
  }
  pen.strokeStyle = "#000"; pen.lineWidth = 4.5; line(pen, at, view.path.states, view.t);
  pen.strokeStyle = "#fff"; pen.lineWidth = 2.2; line(pen, at, view.path.states, view.t);
  const dot = (state, radius, fill) => {
    pen.beginPath(); pen.arc(at.x(wrapped(state[i], i)), at.y(wrapped(state[j], j)), radius, 0, 7);
    pen.fillStyle = fill; pen.fill(); pen.strokeStyle = "#000"; pen.lineWidth = 2; pen.stroke();
  };
  dot(view.path.states[0], 5, "#fff");
  dot(now(), 8, "#ffd400");
  pen.restore();
  pen.fillStyle = css("--ink"); pen.strokeStyle = css("--line"); pen.lineWidth = 1;
  pen.strokeRect(frame.left, frame.top, at.w, at.h);
  pen.textAlign = "center"; pen.textBaseline = "top";
  for (const x of ticks(data.low[i], data.high[i])) pen.fillText(short(x), at.x(x), frame.top + at.h + 5);
  pen.fillText(data.states[i], frame.left + at.w / 2, frame.top + at.h + 22);
  pen.textAlign = "right"; pen.textBaseline = "middle";
  for (const y of ticks(data.low[j], data.high[j])) pen.fillText(short(y), frame.left - 5, at.y(y));
  pen.save(); pen.translate(9, frame.top + at.h / 2); pen.rotate(-Math.PI / 2); pen.textAlign = "center";
  pen.fillText(data.states[j], 0, 0); pen.restore();
}

// ---- the response to set-points ---------------------------------------------------------------------------

/** The lowest and highest of the numbers with a set-point, and the largest error, in the episodes from the fixed starts. */
const reaches = data.plan ? data.plan.pairs.map(([i, goal], k) => ({low: Math.min(...data.plan.ends[k]), high: Math.max(...data.plan.ends[k]), error: 0, i, goal})) : [];
function measureReaches() {
  for (const reach of reaches) for (const path of [...view.before, view.path]) for (const state of path.states) {
    const seen = observe(state), x = seen[reach.i];
    reach.low = Math.min(reach.low, x); reach.high = Math.max(reach.high, x);
    reach.error = Math.max(reach.error, Math.abs(x - seen[reach.goal]));
  }
}

/** The strips of the picture from top to bottom: numbers with their set-points, actions, errors from the fixed starts. */
function strips(width, height) {
  const {outputs, samples} = data.plan, found = [];
  outputs.forEach((name, k) => found.push({kind: "output", k, name, share: 2 + 1.4 / outputs.length, steps: samples, low: reaches[k].low, high: reaches[k].high, gap: 8}));
  tree.actions.forEach((name, k) => found.push({kind: "action", k, name, share: 1.3, steps: samples, low: lowest[k], high: highest[k], gap: 8}));
  found[found.length - 1].gap = 44;
  outputs.forEach((name, k) => found.push({kind: "errors", k, name: `error of ${name}`, share: 1.3, steps: data.horizon, low: -reaches[k].error, high: reaches[k].error, gap: 8}));
  found[found.length - 1].gap = 36;
  const room = height - 6 - found.reduce((sum, one) => sum + one.gap, 0), all = found.reduce((sum, one) => sum + one.share, 0);
  let top = 6;
  for (const one of found) {
    const [low, high, at, h] = [one.low - 0.04 * (one.high - one.low), one.high + 0.04 * (one.high - one.low), top, room * one.share / all];
    const wide = width - frame.left - frame.right;
    Object.assign(one, {top, h, wide, x: (t) => frame.left + t / one.steps * wide, y: (v) => at + h - (v - low) / (high - low || 1) * h,
      t: (px) => (px - frame.left) / wide * one.steps, v: (py) => low + (at + h - py) / h * (high - low)});
    top += h + one.gap;
  }
  return found;
}

function drawResponse() {
  const count = 2 * data.plan.outputs.length + tree.actions.length, canvas = $("map");
  const [pen, width, height] = fitted(canvas, Math.max(0.72 + 0.1 * count, (70 + 85 * count) / (canvas.clientWidth || 300)));
  const curve = (strip, path, of, ink, thick) => {
    pen.strokeStyle = ink; pen.lineWidth = thick; pen.lineJoin = "round"; pen.beginPath();
    for (let t = 0; t < path.length; t++) pen.lineTo(strip.x(t), strip.y(of(path[t])));
    pen.stroke();
  };
  const {plan} = view, loaded = tree.actions.indexOf(data.plan.loaded);
  for (const strip of strips(width, height)) {
    const {kind, k, top, h, wide, x, y} = strip, reach = reaches[k];
    pen.fillStyle = css("--tint2"); pen.fillRect(frame.left, top, wide, h);
    pen.save(); pen.beginPath(); pen.rect(frame.left, top, wide, h); pen.clip();
    if (kind !== "errors" && plan.load !== 0 && (kind === "output" || k === loaded)) {
      pen.fillStyle = "rgba(127,127,127,.16)"; pen.fillRect(x(plan.begins), top, wide, h);
    }
    if (kind === "output") {
      if (view.first) curve(strip, view.first.states, (s) => observe(s)[reach.i], css("--soft"), 1.6);
      curve(strip, view.path.states, (s) => observe(s)[reach.i], css("--signal"), 3);
      const [before, after] = plan.goals[k], step = plan.steps[k];
      pen.strokeStyle = css("--accent"); pen.lineWidth = 2.5; pen.setLineDash([9, 5]); pen.beginPath();
      pen.moveTo(x(0), y(before)); pen.lineTo(x(step), y(before)); pen.lineTo(x(step), y(after)); pen.lineTo(x(strip.steps), y(after)); pen.stroke(); pen.setLineDash([]);
      disc(pen, x(step / 2), y(before), 7, css("--accent")); disc(pen, x(0.75 * step + 0.25 * strip.steps), y(after), 7, css("--accent"));
      pen.fillStyle = css("--accent"); pen.fillRect(x(step) - 3, y((before + after) / 2) - 11, 6, 22);
      if (plan.load !== 0) {
        pen.fillStyle = css("--soft"); pen.fillRect(x(plan.begins) - 2, top + h - 24, 4, 24);
        pen.textAlign = "left"; pen.textBaseline = "bottom"; pen.fillText(`load ${short(plan.load)}`, x(plan.begins) + 7, top + h - 6);
      }
    } else if (kind === "action") {
      if (view.first) curve(strip, view.first.actions, (u) => u[k], css("--soft"), 1.6);
      curve(strip, view.path.actions, (u) => u[k], css("--ink"), 2);
      if (leafCount > 1) view.path.places.forEach((at, t) => { pen.fillStyle = colour(places[at].leaf - 1); pen.fillRect(x(t), top + h - 6, x(1) - x(0) + 0.6, 6); });
    } else {
      const off = (s) => { const seen = observe(s); return seen[reach.goal] - seen[reach.i]; }; // as the feature has it
      pen.globalAlpha = 0.55;
      for (const one of view.fixed) curve(strip, one.states, off, css("--signal"), 1.1);
      pen.globalAlpha = 1; pen.strokeStyle = css("--accent"); pen.lineWidth = 1.2; pen.beginPath(); pen.moveTo(x(0), y(0)); pen.lineTo(x(strip.steps), y(0)); pen.stroke();
    }
    if (kind !== "errors") { pen.fillStyle = css("--accent"); pen.fillRect(x(view.t) - 1, top, 2, h); }
    pen.restore();
    pen.fillStyle = css("--ink"); pen.textAlign = "right"; pen.textBaseline = "middle";
    for (const v of ticks(strip.low, strip.high, Math.max(2, h / 26))) pen.fillText(short(v), frame.left - 5, y(v));
    pen.textAlign = "right"; pen.textBaseline = "top"; pen.fillStyle = css("--soft");
    pen.fillText(kind === "errors" ? `${strip.name}, ${view.fixed.length} fixed starts` : strip.name, frame.left + wide - 6, top + 5);
    if (strip.gap > 8) {
      pen.fillStyle = css("--ink"); pen.textAlign = "center"; pen.textBaseline = "top";
      const [length, word] = timeUnit(strip.steps * data.timeStep);
      for (const time of ticks(0, strip.steps * data.timeStep / length)) pen.fillText(short(time), x(time * length / data.timeStep), top + h + 4);
      pen.textAlign = "right"; pen.fillStyle = css("--soft"); pen.fillText(`time [${word}]`, frame.left + wide, top + h + 18);
    }
  }
}

/** What the pointer takes hold of in the picture, as a function that moves it. */
function grabbed(px, py, width, height) {
  const strip = strips(width, height).find((one) => py >= one.top && py <= one.top + one.h), {plan} = view;
  if (!strip || strip.kind === "errors") return null;
  const t = (at) => Math.round(Math.min(Math.max(strip.t(at), 0), strip.steps));
  if (strip.kind === "action") return (x) => { stop(); view.t = Math.min(t(x), view.path.states.length - 1); later(moment); };
  if (Math.abs(px - strip.x(plan.steps[strip.k])) < 12) return (x) => { plan.steps[strip.k] = t(x); replanned(); };
  if (plan.load !== 0 && Math.abs(px - strip.x(plan.begins)) < 12) return (x) => { plan.begins = t(x); replanned(); };
  const side = strip.t(px) < plan.steps[strip.k] ? 0 : 1, [low, high] = data.plan.ends[strip.k];
  return (_, y) => { plan.goals[strip.k][side] = Number(Math.min(Math.max(strip.v(y), low), high).toPrecision(4)); replanned(); };
}

const planBoxes = [];
function buildPlan() {
  const {plan} = view, [length, word] = timeUnit(data.plan.samples * data.timeStep), step = data.timeStep / length, end = data.plan.samples * step, add = (label, low, high, get, set) => {
    const box = document.createElement("div");
    box.className = "slider";
    fillSlider(box, `plan-${planBoxes.length}`, label, low, high, get, (x) => { set(x); replanned(); });
    planBoxes.push(box); $("plan").append(box);
  };
  data.plan.setpoints.forEach((name, k) => {
    ["first", "then"].forEach((when, side) =>
      add(`${plain(name)}, ${when}`, ...data.plan.ends[k], () => plan.goals[k][side], (x) => { plan.goals[k][side] = x; }));
    add(`${plain(name)} steps at [${word}]`, 0, end, () => plan.steps[k] * step, (x) => { plan.steps[k] = Math.round(x / step); });
  });
  const most = 2 * Math.abs(data.plan.load) || 1;
  add(`load on ${plain(data.plan.loaded)}`, -most, most, () => plan.load, (x) => { plan.load = x; });
  add(`load begins at [${word}]`, 0, end, () => plan.begins * step, (x) => { plan.begins = Math.round(x / step); });
}
function replan() { for (const box of planBoxes) box.show(); restart(); }
function replanned() { stop(); later(replan); }

function drawLegend() {
  const parts = [];
  const chip = (fill, text) => `<span class="key"><i style="background:${fill}"></i>${escaped(text)}</span>`;
  if (view.shows === "response") {
    parts.push(chip(css("--accent"), data.plan.setpoints.map(plain).join(", ")), chip(css("--signal"), data.plan.outputs.map(plain).join(", ")));
    if (edited()) parts.push(chip(css("--soft"), "before the edits"));
  } else if (view.shows === "leaf") for (let k = 0; k < Math.min(leafCount, 12); k++) parts.push(chip(colour(k), `leaf ${k + 1}`));
  else if (listed) tree.actions.forEach((name, k) => parts.push(chip(colour(k), name)));
  else {
    const [low, high] = [lowest[view.output], highest[view.output]];
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      const u = low + share * (high - low), all = tree.actions.map(() => 0);
      all[view.output] = u;
      parts.push(chip(`rgb(${actionColour(all).map(Math.round)})`, share === 1 ? `${short(u)} ${unit(tree.actions[view.output])}` : short(u)));
    }
    parts.unshift(`<span>${escaped(plain(tree.actions[view.output]))}</span>`);
  }
  $("legend").innerHTML = parts.join("");
}

// ---- the plant and the time -------------------------------------------------------------------------------

const drawings = {
  pendulum(pen, w, h, s, u) {
    const size = Math.min(w, h) * 0.45, [x, y] = [w / 2, h / 2];
    rod(pen, x, y, x - size * Math.sin(s[0]), y - size * Math.cos(s[0]), 12);
    disc(pen, x, y, 6, css("--ink"));
    if (u) { // torque, as an arc around the pivot
      const span = Math.max(-2.4, Math.min(2.4, u[0])), arc = size * 0.35;
      pen.strokeStyle = css("--accent"); pen.lineWidth = 3; pen.beginPath();
      pen.arc(x, y, arc, -Math.PI / 2, -Math.PI / 2 - span, span > 0); pen.stroke();
      disc(pen, x + arc * Math.cos(-Math.PI / 2 - span), y + arc * Math.sin(-Math.PI / 2 - span), 4, css("--accent"));
    }
  },
  "cart-pole"(pen, w, h, s, u) {
    const reach = Math.max(2.4, data.high[0]), scale = w / (2.4 * reach), y = h * (data.turns[2] ? 0.5 : 0.62), x = w / 2 + s[0] * scale;
    pen.strokeStyle = css("--soft"); pen.lineWidth = 2; pen.beginPath(); pen.moveTo(8, y + 12); pen.lineTo(w - 8, y + 12); pen.stroke();
    pen.fillStyle = css("--ink"); pen.fillRect(x - 22, y - 10, 44, 20);
    const push = listed ? (u[0] - first ? 1 : -1) : u[0] / highest[0];
    arrow(pen, x + Math.sign(push) * 24, y, push * 40);
    rod(pen, x, y - 10, x + h * 0.42 * Math.sin(s[2]), y - 10 - h * 0.42 * Math.cos(s[2]), 7);
  },
  "mountain-car"(pen, w, h, s, u) {
    const px = (v) => 12 + (v + 1.2) / 1.8 * (w - 24), py = (v) => h * 0.9 - (Math.sin(3 * v) * 0.45 + 0.55) * h * 0.7;
    pen.strokeStyle = css("--soft"); pen.lineWidth = 3; pen.beginPath();
    for (let v = -1.2; v <= 0.6; v += 0.02) pen.lineTo(px(v), py(v));
    pen.stroke();
    pen.fillStyle = "#009E73"; pen.fillRect(px(0.5), py(0.5) - 34, 3, 34); pen.fillRect(px(0.5), py(0.5) - 34, 18, 11);
    disc(pen, px(s[0]), py(s[0]) - 10, 10, css("--ink"));
    arrow(pen, px(s[0]), py(s[0]) - 28, (listed ? u[0] - first - 1 : u[0]) * 36);
  },
  acrobot(pen, w, h, s) {
    const size = h * 0.22, [x, y] = [w / 2, h / 2], [a, b] = [x + size * Math.sin(s[0]), y + size * Math.cos(s[0])];
    pen.strokeStyle = "#009E73"; pen.setLineDash([5, 5]); pen.lineWidth = 2; pen.beginPath();
    pen.moveTo(10, y - size); pen.lineTo(w - 10, y - size); pen.stroke(); pen.setLineDash([]);
    rod(pen, x, y, a, b, 8); rod(pen, a, b, a + size * Math.sin(s[0] + s[1]), b + size * Math.cos(s[0] + s[1]), 8);
    disc(pen, x, y, 5, css("--ink")); disc(pen, a, b, 5, css("--ink"));
  },
  oven(pen, w, h, s, u) {
    const size = Math.min(w * 0.5, h * 0.86), x = w * 0.42 - size / 2, y = (h - size) / 2, glow = Math.max(0, Math.min(1, u[0]));
    pen.fillStyle = css("--tint2"); pen.fillRect(x, y, size, size);
    pen.fillStyle = `rgba(213,94,0,${0.05 + 0.75 * glow})`; pen.fillRect(x + 12, y + 12, size - 24, size - 44);
    pen.strokeStyle = css("--ink"); pen.lineWidth = 4; pen.strokeRect(x, y, size, size); pen.strokeRect(x + 12, y + 12, size - 24, size - 44);
    pen.strokeStyle = `rgba(213,94,0,${0.25 + 0.75 * glow})`; pen.lineWidth = 5; pen.lineCap = "round"; pen.beginPath();
    for (let k = 0; k <= 40; k++) pen.lineTo(x + 24 + k / 40 * (size - 48), y + size - 50 - 8 * Math.sin(k / 40 * 8 * Math.PI));
    pen.stroke();
    gauge(pen, x + size + w * 0.1, y, size, 0, 0, s);
  },
  motor(pen, w, h, s, u) {
    const size = Math.min(w, h) * 0.4, [x, y] = [w / 2, h / 2], hand = (angle, length) => [x + length * Math.sin(angle), y - length * Math.cos(angle)];
    disc(pen, x, y, size, css("--tint2"));
    pen.strokeStyle = css("--soft"); pen.lineWidth = 2;
    for (let a = -3; a <= 3; a += 0.5) { pen.beginPath(); pen.moveTo(...hand(a, size * 0.9)); pen.lineTo(...hand(a, size)); pen.stroke(); }
    pen.strokeStyle = css("--accent"); pen.lineWidth = 3; pen.setLineDash([6, 5]); pen.beginPath(); pen.moveTo(x, y); pen.lineTo(...hand(s[2], size)); pen.stroke(); pen.setLineDash([]);
    rod(pen, x, y, ...hand(s[0], size * 0.82), 11); disc(pen, x, y, 8, css("--ink"));
    arrow(pen, x, h - 10, u[0] / highest[0] * w * 0.3);
  },
  "two-tanks"(pen, w, h, s, u) { tanks(pen, w, h, [[0.3, 0.04, 1, -1], [0.3, 0.56, 0, 0]], s, u, [[0, 0.3]]); },
  "four-tanks"(pen, w, h, s, u) { tanks(pen, w, h, [[0.04, 0.04, 2, -1], [0.52, 0.04, 3, -1], [0.04, 0.56, 0, 0], [0.52, 0.56, 1, 1]], s, u, [[0, 0.04], [1, 0.52]]); },
  crane(pen, w, h, s, u) {
    const scale = w / 3.4, y = h * 0.16, x = w / 2 + s[0] * scale, goal = w / 2 + s[4] * scale, rope = h * 0.56;
    pen.strokeStyle = css("--soft"); pen.lineWidth = 4; pen.beginPath(); pen.moveTo(6, y); pen.lineTo(w - 6, y); pen.stroke();
    pen.strokeStyle = css("--accent"); pen.lineWidth = 2.5; pen.setLineDash([6, 5]); pen.beginPath(); pen.moveTo(goal, y); pen.lineTo(goal, h * 0.92); pen.stroke(); pen.setLineDash([]);
    const [a, b] = [x + rope * Math.sin(s[2]), y + rope * Math.cos(s[2])];
    pen.strokeStyle = css("--ink"); pen.lineWidth = 2; pen.beginPath(); pen.moveTo(x, y); pen.lineTo(a, b); pen.stroke();
    pen.fillStyle = css("--ink"); pen.fillRect(x - 24, y - 9, 48, 18);
    pen.fillStyle = "#D55E00"; pen.fillRect(a - 18, b, 36, 28);
    arrow(pen, x, y - 18, u[0] / highest[0] * 60);
  },
  "ball-and-beam"(pen, w, h, s) {
    const [x, y] = [w / 2, h * 0.55], scale = w * 0.42 / 0.21, turn = [Math.cos(s[2]), Math.sin(s[2])], along = (v, up) => [x + v * turn[0] * scale + up * turn[1], y + v * turn[1] * scale - up * turn[0]];
    pen.strokeStyle = css("--ink"); pen.lineWidth = 7; pen.lineCap = "round"; pen.beginPath(); pen.moveTo(...along(-0.21, 0)); pen.lineTo(...along(0.21, 0)); pen.stroke();
    pen.fillStyle = css("--soft"); pen.beginPath(); pen.moveTo(x, y + 4); pen.lineTo(x - 16, y + 40); pen.lineTo(x + 16, y + 40); pen.fill();
    pen.strokeStyle = css("--accent"); pen.lineWidth = 3; pen.beginPath(); pen.moveTo(...along(s[4], 4)); pen.lineTo(...along(s[4], 44)); pen.stroke();
    disc(pen, ...along(s[0], 17), 13, "#D55E00");
  },
  ""(pen, w, h, s) { // a bar for each number, with a mark for its set-point
    const bars = s.map((x, k) => [x, k]).filter(([, k]) => !data.plan || !data.plan.places.includes(k));
    const row = Math.min(40, (h - 10) / bars.length), left = Math.min(150, w * 0.42), span = w - left - 64;
    pen.textBaseline = "middle";
    bars.forEach(([x, k], i) => {
      const y = 8 + row * (i + 0.5), share = (v) => left + Math.max(0, Math.min(1, (v - data.low[k]) / (data.high[k] - data.low[k]))) * span;
      pen.fillStyle = css("--tint2"); pen.fillRect(left, y - 6, span, 12);
      const zero = share(Math.max(data.low[k], Math.min(0, data.high[k])));
      pen.fillStyle = css("--signal"); pen.fillRect(Math.min(zero, share(x)), y - 6, Math.abs(share(x) - zero), 12);
      pen.fillStyle = css("--ink"); pen.fillRect(share(x) - 1.5, y - 9, 3, 18);
      const goal = data.plan ? data.plan.outputs.indexOf(data.states[k]) : -1;
      if (goal >= 0) { pen.fillStyle = css("--accent"); pen.fillRect(share(s[data.plan.places[goal]]) - 2, y - 12, 4, 24); }
      pen.textAlign = "right"; pen.fillText(plain(data.states[k]), left - 8, y);
      pen.textAlign = "left"; pen.fillText(short(x), left + span + 8, y);
    });
  },
};
/** A column from the lowest to the highest of a number of the state, with its set-point. */
function gauge(pen, x, y, h, k, goal, s) {
  const low = Math.min(data.low[k], data.plan.ends[goal][0]), high = Math.max(data.high[k], data.plan.ends[goal][1]);
  const level = (v) => y + h - Math.max(0, Math.min(1, (v - low) / (high - low))) * h;
  pen.fillStyle = css("--tint2"); pen.fillRect(x, y, 22, h);
  pen.fillStyle = "#D55E00"; pen.fillRect(x, level(s[k]), 22, y + h - level(s[k]));
  const wanted = s[data.plan.places[goal]];
  pen.fillStyle = css("--accent"); pen.fillRect(x - 6, level(wanted) - 2, 34, 4);
  pen.fillStyle = css("--ink"); pen.textAlign = "left"; pen.textBaseline = "middle";
  pen.fillText(`${short(s[k])} ${unit(data.states[k])}`, x + 32, level(s[k]));
}
/** Tanks at places of a drawing: of each the number of the state that is its level, and its set-point. */
function tanks(pen, w, h, all, s, u, pumps) {
  for (const [left, top, k, goal] of all) {
    const [x, y, wide, high] = [left * w, top * h, 0.28 * w, 0.38 * h], level = (v) => y + high * (1 - Math.max(0, Math.min(1, v / Math.max(20, data.high[k]))));
    pen.fillStyle = css("--tint2"); pen.fillRect(x, y, wide, high);
    pen.fillStyle = css("--signal"); pen.fillRect(x, level(s[k]), wide, y + high - level(s[k]));
    pen.strokeStyle = css("--ink"); pen.lineWidth = 3; pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x, y + high); pen.lineTo(x + wide, y + high); pen.lineTo(x + wide, y); pen.stroke();
    if (goal >= 0) { pen.fillStyle = css("--accent"); pen.fillRect(x - 6, level(s[data.plan.places[goal]]) - 1.5, wide + 12, 3); }
    pen.textAlign = "left"; pen.textBaseline = "middle"; pen.fillStyle = css("--ink");
    pen.fillText(`${short(s[k])} ${unit(data.states[k])}`, x + wide + 8, level(s[k]));
  }
  for (const [k, left] of pumps) { // as a bar between the tanks
    pen.fillStyle = css("--tint2"); pen.fillRect(left * w, 0.475 * h, 0.28 * w, 8);
    pen.fillStyle = "#D55E00"; pen.fillRect(left * w, 0.475 * h, 0.28 * w * u[k] / highest[k], 8);
    pen.fillStyle = css("--ink"); pen.fillText(plain(tree.actions[k]), left * w + 0.28 * w + 8, 0.475 * h + 4);
  }
}
function rod(pen, x, y, a, b, width) {
  pen.strokeStyle = "#D55E00"; pen.lineWidth = width; pen.lineCap = "round";
  pen.beginPath(); pen.moveTo(x, y); pen.lineTo(a, b); pen.stroke();
}
function disc(pen, x, y, radius, fill) { pen.fillStyle = fill; pen.beginPath(); pen.arc(x, y, radius, 0, 7); pen.fill(); }
function arrow(pen, x, y, length) {
  if (Math.abs(length) < 1) return;
  const tip = x + length, back = tip - Math.sign(length) * 8;
  pen.strokeStyle = pen.fillStyle = css("--accent"); pen.lineWidth = 4; pen.lineCap = "butt";
  pen.beginPath(); pen.moveTo(x, y); pen.lineTo(back, y); pen.stroke();
  pen.beginPath(); pen.moveTo(tip, y); pen.lineTo(back, y - 7); pen.lineTo(back, y + 7); pen.fill();
}

function drawPlant() {
  const [pen, w, h] = fitted($("plant"), data.drawn ? 0.72 : Math.max(0.3, 0.12 * shownStates));
  drawings[data.drawn](pen, w, h, now().slice(0, shownStates), present().action);
}

function drawTrace() {
  $("trace").hidden = view.shows === "response"; // which has the actions
  if ($("trace").hidden) return;
  const [pen, w, h] = fitted($("trace"), 0.24), steps = Math.max(1, view.path.actions.length), x = (t) => t / steps * w;
  const values = view.path.actions.map((a) => a[view.output]);
  const low = listed ? first : lowest[view.output];
  const high = listed ? first + tree.actions.length - 1 : highest[view.output];
  const room = h - 20, y = (u) => 4 + (1 - (u - low) / (high - low || 1)) * (room - 8);
  pen.fillStyle = css("--tint2"); pen.fillRect(0, 0, w, room);
  // Where several steps share a pixel or two: their mean, and behind it their range.
  const group = Math.max(1, Math.ceil(4 * steps / w)), ink = css("--ink");
  pen.strokeStyle = pen.fillStyle = ink; pen.lineWidth = 1.5; pen.beginPath();
  for (let t = 0; t < values.length; t += group) {
    const some = values.slice(t, t + group), middle = some.reduce((a, b) => a + b) / some.length;
    const [top, bottom] = [y(Math.max(...some)), y(Math.min(...some))];
    pen.globalAlpha = 0.18; pen.fillRect(x(t), top, x(some.length), bottom - top); pen.globalAlpha = 1;
    pen.lineTo(x(t), y(middle)); pen.lineTo(x(t + some.length), y(middle));
  }
  pen.stroke();
  view.path.places.forEach((at, t) => { pen.fillStyle = colour(places[at].leaf - 1); pen.fillRect(x(t), room + 4, x(1) + 0.6, 12); });
  pen.fillStyle = css("--accent"); pen.fillRect(Math.min(x(view.t), w - 2), 0, 2.5, h);
}

// ---- the tree ---------------------------------------------------------------------------------------------

const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})[c]);

function sumText(weights, names, offset = 0) {
  const terms = [];
  if (offset !== 0) terms.push([offset, ""]);
  weights.forEach((w, j) => { if (w !== 0) terms.push([w, plain(names[j])]); });
  if (!terms.length) return "0";
  return terms.map(([w, name], k) => {
    const sign = k ? (w < 0 ? " − " : " + ") : (w < 0 ? "−" : ""), size = short(Math.abs(w));
    return sign + (name ? (size === "1" ? name : `${size} ${name}`) : size);
  }).join("");
}

function numberName(j) { return j < dims ? plain(inputs[j]) : sumText(tree.combinations[j - dims], inputs); }

function lawText(row) {
  const {offset, gain} = tree.laws, score = (k) => sumText(gain[row][k], inputs, offset[row][k]);
  if (!listed) return offset[row].map((_, k) => `${plain(tree.actions[k])} = ${score(k)}`).join(constant(row) ? ", " : "; ");
  if (constant(row)) return actionText(lawAction(row, []));
  const taken = offset[row].map((c, k) => [c, k]).filter(([c]) => c > -Infinity).map(([, k]) => k);
  if (taken.length === 1) return tree.actions[taken[0]];
  if (taken.length === 2) return `${tree.actions[taken[1]]} if ${score(taken[1])} > ${score(taken[0])}, else ${tree.actions[taken[0]]}`;
  return `highest of ${taken.map((k) => `${tree.actions[k]}: ${score(k)}`).join("; ")}`;
}

function ruleText(place, holds = true) {
  const node = place.node;
  return `${numberName(tree.nodes.feature[node])} ${holds ? "<" : "≥"} ${short(tree.nodes.threshold[node])}`;
}

const buttons = [];
function buildTree() {
  const write = (at) => {
    const place = places[at], item = document.createElement("li"), button = document.createElement("button");
    buttons[at] = button;
    button.className = place.leaf ? "leaf" : "rule";
    button.addEventListener("click", () => choose(at));
    item.append(button);
    if (!place.leaf) { const list = document.createElement("ul"); list.append(write(place.left), write(place.right)); item.append(list); }
    return item;
  };
  const root = document.createElement("ul"), heading = document.createElement("p");
  root.append(write(mirror ? places[0].right : 0));
  heading.className = "soft"; heading.textContent = mirror ? `${mirror.heading}:` : "";
  $("tree").replaceChildren(heading, root);
  $("size").textContent = `${leafCount} ${leafCount === 1 ? "leaf" : "leaves"}${mirror ? ", and mirrored" : ""}`;
}

function labelTree() {
  places.forEach((place, at) => {
    if (!buttons[at]) return;
    const mark = place.parent < 0 || !buttons[place.parent] ? "" : `<b class="way">${place.lower ? "yes" : "no"}</b>`;
    buttons[at].innerHTML = mark + (place.leaf
      ? `<i style="background:${colour(place.leaf - 1)}">${place.leaf}</i><span>${escaped(lawText(tree.nodes.leaf[place.node]))}</span>`
      : `<span>${escaped(ruleText(place))}?</span>`);
  });
}

let shownLeaf = -1;
function markTree() {
  const way = new Set(), at = present().at, leaf = places[at].shown ?? at, box = $("tree");
  for (let at = leaf; at >= 0; at = places[at].parent) way.add(at);
  if (leaf !== shownLeaf) { // only the list is scrolled, not the page
    const top = buttons[leaf].offsetTop - box.offsetTop, low = top + buttons[leaf].offsetHeight;
    if (top < box.scrollTop || low > box.scrollTop + box.clientHeight) box.scrollTop = low - box.clientHeight + 8;
    shownLeaf = leaf;
  }
  buttons.forEach((button, at) => {
    button.classList.toggle("on", way.has(at));
    button.setAttribute("aria-pressed", String(at === view.chosen));
  });
}

/** The features at the moment, and what each adds to an action by the law of the leaf. */
function drawFeatures() {
  if (Controller === null || listed) return;
  const {at, action, given} = present(), velocity = data.file.controller.memory?.form === "velocity";
  const offset = tree.laws.offset[tree.nodes.leaf[places[at].node]];
  const term = (place, k, values, j) => tree.laws.gain[tree.nodes.leaf[places[place].node]][k][j] * values[j];
  const most = tree.actions.map((_, k) => view.path.given.reduce((found, values, t) =>
    Math.max(found, ...values.map((_, j) => Math.abs(term(view.path.places[t], k, values, j)))), 1e-12));
  const bar = (x, k) => `<td class="term"><i class="${x < 0 ? "minus" : ""}" style="width:${Math.min(50, 50 * Math.abs(x) / most[k])}%"></i><span>${x === 0 ? "" : short(x)}</span></td>`;
  const lines = data.inputs.map(({name, formula, remembers}, j) => `<tr title="${escaped(formula)}"><th>${escaped(plain(name))}${remembers ? "<sup>m</sup>" : ""}</th>`
    + `<td>${short(given[j])} <small>${escaped(unit(name))}</small></td>${action.map((_, k) => bar(term(at, k, given, j), k)).join("")}</tr>`);
  if (offset.some((x) => x !== 0)) lines.push(`<tr><th>constant</th><td></td>${offset.map(bar).join("")}</tr>`);
  const total = action.map((_, k) => given.reduce((sum, _, j) => sum + term(at, k, given, j), offset[k]));
  lines.push(`<tr class="total"><th>${velocity ? "change" : "sum"}</th><td></td>${total.map((x) => `<td>${short(x)}</td>`).join("")}</tr>`);
  lines.push(`<tr class="total"><th>given</th><td></td>${action.map((x, k) => `<td>${short(x)}${!velocity && Math.abs(x - total[k]) > 1e-6 * (1 + Math.abs(x)) ? " <small>limited</small>" : ""}</td>`).join("")}</tr>`);
  $("features").innerHTML = `<table><thead><tr><th>feature</th><th>value</th>${tree.actions.map((name) => `<th>adds to ${escaped(plain(name))}</th>`).join("")}</tr></thead><tbody>${lines.join("")}</tbody></table>`
    + (data.inputs.some((one) => one.remembers) ? '<p class="soft"><sup>m</sup> remembers. Point at a feature for its formula.</p>' : "");
}

// ---- editing ----------------------------------------------------------------------------------------------

/** The numbers that can be changed at a place: a label, where each is, and its range. */
function editable(at) {
  const place = places[at], node = place.node, found = [];
  const locked = tree.locked.length && (!place.leaf || tree.locked.includes(tree.nodes.leaf[node]));
  if (locked) return null;
  const add = (label, holder, start, key, reach, low, high) => found.push({label, holder, start, key, low: low ?? start[key] - reach, high: high ?? start[key] + reach});
  if (!place.leaf) {
    const j = tree.nodes.feature[node], at0 = original.nodes.threshold[node];
    const seen = view.before.flatMap((one) => one.given.filter((_, t) => t % 5 === 0))
      .map((s) => (j < dims ? s[j] : affine(0, original.combinations[j - dims], s)));
    // The range of the observation; without one, of what the fixed episodes see.
    const given = j < data.observationSpace.low.length && dims === data.observationSpace.low.length;
    const [low, high] = [["low", Math.min], ["high", Math.max]].map(([end, most]) => {
      const bound = given ? Number(data.observationSpace[end][j]) : NaN;
      return Math.abs(bound) < 1e30 ? bound : most(at0, ...seen);
    });
    const side = mirror && j === original.nodes.feature[0] ? high / 1e6 : low; // below it is the other half
    add("threshold", tree.nodes.threshold, original.nodes.threshold, node, 0, Math.max(low, side), high > low ? high : low + 1);
    if (j >= dims) tree.combinations[j - dims].forEach((w, k) => { if (original.combinations[j - dims][k] !== 0) add(`weight of ${plain(inputs[k])}`, tree.combinations[j - dims], original.combinations[j - dims], k, 2 * Math.abs(original.combinations[j - dims][k])); });
    return found;
  }
  const row = tree.nodes.leaf[node], {offset, gain} = tree.laws, from = original.laws;
  const fixed = constant(row, original), span = (k) => highest[k] - lowest[k];
  if (listed && fixed) return Controller === null ? [{label: "action", names: tree.actions, row}] : [];
  if (fixed && data.file.controller.memory?.form !== "velocity") {
    offset[row].forEach((_, k) => add(tree.actions[k], offset[row], from.offset[row], k, 0, lowest[k], highest[k]));
    return found;
  }
  offset[row].forEach((c, k) => {
    if (c === -Infinity) return;
    const gains = from.gain[row][k], largest = Math.max(...gains.map(Math.abs), Math.abs(from.offset[row][k]));
    if (listed && largest === 0) return; // the score that all others are compared with
    const name = offset[row].length > 1 || listed ? `${plain(tree.actions[k])}: ` : "";
    add(`${name}offset`, offset[row], from.offset[row], k, 2 * Math.abs(from.offset[row][k]) || (listed ? largest : span(k) / 2));
    gains.forEach((g, j) => { if (g !== 0) add(`${name}gain of ${plain(inputs[j])}`, gain[row][k], gains, j, 2 * Math.abs(g)); });
  });
  return found;
}

/** Fill a box with a label, a slider and a field for a number. */
function fillSlider(box, id, label, low, high, get, set) {
  box.innerHTML = `<label for="${id}">${escaped(label)}</label><input id="${id}" type="range" min="${low}" max="${high}" step="any"><input type="number" step="any" aria-label="${escaped(label)}, as a number">`;
  const [, slide, field] = box.children, given = (x) => { if (Number.isFinite(x)) set(x); };
  box.show = () => { slide.value = get(); field.value = Number(get().toPrecision(5)); };
  slide.step = String((high - low) / 400);
  slide.addEventListener("input", () => { given(Number(Number(slide.value).toPrecision(4))); field.value = Number(get().toPrecision(6)); });
  field.addEventListener("change", () => { given(Number(field.value)); box.show(); });
  box.show();
}

function choose(at) {
  view.chosen = at;
  const place = places[at], found = editable(at), box = $("sliders");
  $("what").textContent = place.leaf ? `leaf ${place.leaf}` : ruleText(place);
  box.replaceChildren();
  if (!found) box.textContent = "Locked: a person has fixed what it does.";
  for (const [k, one] of (found || []).entries()) {
    const id = `edit-${k}`, rowBox = document.createElement("div");
    rowBox.className = "slider";
    if (one.names) {
      rowBox.innerHTML = `<label for="${id}">${escaped(one.label)}</label><select id="${id}"></select>`;
      one.names.forEach((name, a) => rowBox.lastChild.add(new Option(name, first + a)));
      rowBox.lastChild.value = lawAction(one.row, [])[0];
      rowBox.lastChild.addEventListener("change", (event) => {
        const chosen = Number(event.target.value) - first;
        tree.laws.offset[one.row] = one.names.map((_, k) => (k === chosen ? 0 : -Infinity));
        changed();
      });
    } else fillSlider(rowBox, id, one.label, one.low, one.high, () => one.holder[one.key], (x) => { one.holder[one.key] = x; changed(); });
    box.append(rowBox);
  }
  markTree();
}

const edited = () => JSON.stringify([tree.nodes, tree.laws, tree.combinations]) !== JSON.stringify([original.nodes, original.laws, original.combinations]);
const mean = (paths) => paths.reduce((sum, one) => sum + one.total, 0) / paths.length;

function drawReturns() {
  const [pen, w, h] = fitted($("returns"), 0.16);
  const all = [...view.before, ...view.fixed].map((one) => one.total);
  let [low, high] = [Math.min(...all), Math.max(...all)];
  if (high - low < 1e-9) { low -= 1; high += 1; }
  const x = (r) => 10 + (r - low) / (high - low) * (w - 20);
  [[view.before, h * 0.3, css("--soft")], [view.fixed, h * 0.72, css("--accent")]].forEach(([paths, y, ink]) => {
    pen.strokeStyle = css("--line"); pen.lineWidth = 1; pen.beginPath(); pen.moveTo(10, y); pen.lineTo(w - 10, y); pen.stroke();
    pen.globalAlpha = 0.6;
    for (const one of paths) disc(pen, x(one.total), y, 4, ink);
    pen.globalAlpha = 1;
    pen.fillStyle = css("--ink"); pen.fillRect(x(mean(paths)) - 1.5, y - 9, 3, 18);
  });
  const [was, is] = [mean(view.before), mean(view.fixed)], change = is - was;
  $("return").innerHTML = `Mean return of ${view.fixed.length} fixed starts: <b>${short(is, 4)}</b>`
    + (edited() ? ` <span class="soft">(was ${short(was, 4)}, ${change >= 0 ? "+" : ""}${short(change, 3)})</span>` : "");
}

/** The edited controller as the JSON that `spaql edit --tree` takes. */
function saved() {
  const text = (x) => (Array.isArray(x) ? x.map(text) : Number.isFinite(x) ? x : x > 0 ? "inf" : "-inf");
  const arrays = {...data.file.arrays, threshold: text(tree.nodes.threshold), "laws.offset": text(tree.laws.offset)};
  if ("laws.gain" in arrays) arrays["laws.gain"] = text(tree.laws.gain);
  if ("combinations" in arrays) arrays.combinations = text(tree.combinations);
  const controller = {...data.file.controller, smallest: data.file.controller.smallest && !edited()};
  return JSON.stringify({...data.file, controller, arrays}, null, 1);
}

// ---- what changes what ------------------------------------------------------------------------------------

const waiting = new Set();
/** Call a function before the next frame, once: none that waits is lost to another one. */
function later(draw) {
  if (!waiting.size) requestAnimationFrame(() => { const draws = [...waiting]; waiting.clear(); for (const one of draws) one(); });
  waiting.add(draw);
}

/** Draw everything that depends on the moment. */
function moment() {
  drawMap(); drawPlant(); drawTrace(); markTree(); drawFeatures();
  $("time").max = Math.max(0, view.path.states.length - 1); $("time").value = view.t;
  const speed = pace() * data.timeStep, [length, word] = timeUnit(data.horizon * data.timeStep);
  $("clock").textContent = `${(view.t * data.timeStep / length).toFixed(data.timeStep < 0.01 ? 4 : 2)} ${word}${Math.abs(speed - 1) > 0.01 ? `, ${short(speed, 2)}× speed` : ""}`;
  const {at, action} = present(), returned = view.plan ? "return of this step test" : "return from here";
  const said = `leaf ${places[at].leaf} of ${leafCount}${places[at].shown ? ", in the mirror" : ""}: ${actionText(action)}; ${returned} ${short(view.path.total, 4)}${view.path.ended ? ", the episode ends" : view.path.lost ? ", and the equations have no numbers from there on" : ""}`;
  $("said").textContent = view.playing ? $("said").textContent : said;
}
function restart() {
  view.path = rollout(view.start, tree, view.plan);
  view.first = view.plan && edited() ? rollout(view.start, original, view.plan) : null;
  view.t = Math.min(view.t, view.path.states.length - 1);
  moment();
}
function update() { reflect(); view.fixed = data.starts.map((start) => rollout(start)); restart(); labelTree(); markTree(); drawReturns(); drawLegend(); }
function changed() { view.t = view.plan ? view.t : 0; later(update); }
function moveTo(start) {
  stop(); view.start = start; view.t = 0;
  if (view.plan) data.plan.places.forEach((place, k) => { view.plan.goals[k][0] = start[place]; });
  view.path = rollout(start, tree, view.plan);
  later(replan);
}

/** Steps a second when it plays: as in reality, but for episodes that would be over at once or take long. */
const pace = () => { const steps = view.plan ? data.plan.samples : data.horizon; return steps / Math.min(Math.max(steps * data.timeStep, 5), 20); };
let clock = 0, since = 0, from = 0;
function play(time) {
  if (!view.playing) return;
  if (!since) { since = time; from = view.t; }
  const t = Math.min(from + Math.floor((time - since) / 1000 * pace()), view.path.states.length - 1);
  if (t !== view.t) {
    view.t = t;
    if (t === view.path.states.length - 1) stop();
    moment();
  }
  clock = requestAnimationFrame(play);
}
function stop() { view.playing = false; since = 0; cancelAnimationFrame(clock); $("go").textContent = "Play"; $("go").setAttribute("aria-pressed", "false"); }
function toggle() {
  if (view.playing) { stop(); moment(); return; }
  if (view.t >= view.path.states.length - 1) view.t = 0;
  view.playing = true; $("go").textContent = "Pause"; $("go").setAttribute("aria-pressed", "true");
  clock = requestAnimationFrame(play);
}

/** What belongs to the response, or to the map, is shown with it. */
function showView() {
  const response = view.shows === "response";
  $("view").textContent = response ? "Response" : "Map";
  for (const id of ["axis-x", "axis-y"]) $(id).parentElement.hidden = response;
  $("plan").hidden = !response;
  $("map").setAttribute("aria-label", response ? "Response to set-points. Up and down change the set-point of the moment; left and right move the time; Shift for larger steps; Space plays."
    : "Map of the state. Arrow keys move the start; Shift for larger steps; Space plays.");
  $("hint").textContent = response ? "Drag a set-point up or down, or its step and the load to another time. Below: errors from the fixed starts."
    : "Drag the state, or focus the map and use the arrow keys. Thin lines: episodes from fixed starts; of each, 120 steps."
      + (data.remembers ? " Colours: what it would do with what it remembers now." : "");
  drawLegend();
}

function begin() {
  for (const [k, id] of ["axis-x", "axis-y"].entries()) {
    data.states.forEach((name, j) => $(id).add(new Option(plain(name), j)));
    $(id).value = view.axes[k];
    $(id).addEventListener("change", () => {
      const other = 1 - k, old = view.axes[k];
      view.axes[k] = Number($(id).value);
      if (view.axes[k] === view.axes[other]) { view.axes[other] = old; $(["axis-x", "axis-y"][other]).value = old; }
      drawMap();
    });
  }
  (listed ? ["action"] : tree.actions.map(plain)).forEach((name, k) => $("shows").add(new Option(name, `action ${k}`)));
  $("shows").add(new Option("leaf", "leaf"));
  if (data.plan) { $("shows").add(new Option("response", "response"), 0); $("shows").value = "response"; }
  $("shows").addEventListener("change", () => {
    const [what, k] = $("shows").value.split(" ");
    view.shows = what; view.output = Number(k || 0);
    showView(); moment();
  });
  const map = $("map"), within = (x, j) => Math.min(Math.max(x, data.low[j]), data.high[j]);
  let held = null;
  const moveState = (px, py, box) => {
    const [a, b] = mapFrame(box.width, box.height).back(px, py), [i, j] = view.axes, start = view.path.states[0].slice();
    start[i] = within(a, i); start[j] = within(b, j);
    moveTo(start);
  };
  const drag = (event) => {
    const box = map.getBoundingClientRect(), at = [event.clientX - box.left, event.clientY - box.top];
    if (view.shows !== "response") { moveState(...at, box); return; }
    if (event.type === "pointerdown") held = grabbed(...at, box.width, box.height);
    if (held) held(...at);
  };
  map.addEventListener("pointerdown", (event) => { map.setPointerCapture(event.pointerId); drag(event); });
  map.addEventListener("pointermove", (event) => { if (map.hasPointerCapture(event.pointerId)) drag(event); });
  map.addEventListener("keydown", (event) => {
    const way = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowDown: [1, -1], ArrowUp: [1, 1]}[event.key];
    if (event.key === " ") { event.preventDefault(); toggle(); return; }
    if (!way) return;
    event.preventDefault();
    const much = way[1] * (event.shiftKey ? 0.1 : 0.02);
    if (view.shows !== "response") {
      const k = view.axes[way[0]], start = view.path.states[0].slice();
      start[k] = within(start[k] + much * (data.high[k] - data.low[k]), k);
      moveTo(start);
    } else if (way[0] === 0) {
      stop(); view.t = Math.min(Math.max(view.t + Math.round(much * data.plan.steps[0]), 0), view.path.states.length - 1); later(moment);
    } else {
      const side = view.t < view.plan.steps[0] ? 0 : 1, [low, high] = data.plan.ends[0], goals = view.plan.goals[0];
      goals[side] = Math.min(Math.max(goals[side] + much * (high - low), low), high);
      replanned();
    }
  });
  $("go").addEventListener("click", toggle);
  $("time").addEventListener("input", () => { stop(); view.t = Number($("time").value); later(moment); });
  $("reset").addEventListener("click", () => {
    const again = read(data.file);
    tree.nodes = again.nodes; tree.laws = again.laws; tree.combinations = again.combinations;
    update(); choose(view.chosen);
  });
  $("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([saved()], {type: "application/json"}));
    link.download = "edited-controller.json"; link.click();
    $("command").textContent = `Then: spaql edit RUN --tree ${link.download} --out edited.spaql`;
  });
  view.before = data.starts.map((start) => rollout(start, original));
  view.path = rollout(view.start, tree, view.plan);
  if (view.plan) view.t = view.plan.steps[0] + 2; // there is more to see than at the start
  measureReaches();
  if (data.plan) buildPlan();
  buildTree(); showView(); update(); choose(places.findIndex((place, at) => buttons[at] && (Controller === null || place.leaf)));
  const resized = () => { moment(); drawReturns(); };
  new ResizeObserver(() => later(resized)).observe($("play"));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { moment(); drawReturns(); drawLegend(); });
}

window.spaqlPage = {act: (seen) => decide(seen, fresh()).action, find: (seen) => places[find(seen)].leaf, fresh, decide, rollout, observe, saved, view, data, plant};
begin();
})();
