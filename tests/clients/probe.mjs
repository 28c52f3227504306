// An MCP server on stdio that measures its client: it does one slow thing, and writes down what the client does.
//
// PROBE_LOG       every line in and out, the end of input and signals are appended here as JSON lines:
//                 (and once a second that it lives: a killed process cannot say that it was killed)
//                 {"t": ms since this process started, "at": ms of the epoch, "pid", "dir": "in"|"out"|"event", "msg"}
// PROBE_SCENARIO  silent           `slow_probe` never answers and reports nothing
//                 answer:MS        silent, answers after MS
//                 progress:MS      reports progress every MS on the client's token; never answers,
//                                  or after PROBE_ANSWER_AFTER ms
//                 start:MS         answers `initialize` after MS; the tool answers at once
//                 list:MS          answers `tools/list` after MS; the tool answers at once
//                 list-changed     adds the tool `late_probe` after the first `tools/list` and says so
//
// Not here: what the record means (xtask/src/clients/).

import { appendFileSync } from "node:fs";
import { createInterface } from "node:readline";

const KNOWN_REVISIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
const BEAT_MS = 1000;
const LIST_CHANGED_AFTER_MS = 500;
// Long enough for a client to list again before its only turn is over.
const ANSWER_OF_LIST_CHANGED_MS = 3000;

const started = Date.now();
const [kind, ms] = scenario(process.env.PROBE_SCENARIO ?? "silent");
const answerAfter = answerTime();
const reports = new Map();
let lists = 0;
let lateProbe = false;

function scenario(text) {
  const [kind, ms] = text.split(":");
  return [kind, Number(ms ?? 0)];
}

/** When the tool answers: ms, or null for never. */
function answerTime() {
  if (process.env.PROBE_ANSWER_AFTER) return Number(process.env.PROBE_ANSWER_AFTER);
  if (kind === "silent" || kind === "progress") return null;
  if (kind === "answer") return ms;
  return kind === "list-changed" ? ANSWER_OF_LIST_CHANGED_MS : 0;
}

function note(dir, msg) {
  const at = Date.now();
  const line = JSON.stringify({ t: at - started, at, pid: process.pid, dir, msg });
  if (process.env.PROBE_LOG) appendFileSync(process.env.PROBE_LOG, line + "\n");
}

function send(message) {
  const whole = { jsonrpc: "2.0", ...message };
  note("out", whole);
  process.stdout.write(JSON.stringify(whole) + "\n");
}

const answer = (id, result) => send({ id, result });

function tool(name, description) {
  const note = { type: "string", description: "optional, ignored" };
  return { name, description, inputSchema: { type: "object", properties: { note } } };
}

function tools() {
  const slow = tool("slow_probe", "Runs the slow probe and returns its result.");
  return lateProbe ? [slow, tool("late_probe", "Was added after the first list.")] : [slow];
}

function initialize({ id, params }) {
  const asked = params?.protocolVersion;
  const protocolVersion = KNOWN_REVISIONS.includes(asked) ? asked : KNOWN_REVISIONS.at(-1);
  const capabilities = { tools: { listChanged: true }, prompts: {}, resources: {} };
  const result = { protocolVersion, capabilities, serverInfo: { name: "probe", version: "1.0.0" } };
  setTimeout(() => answer(id, result), kind === "start" ? ms : 0);
}

function listTools({ id }) {
  const first = ++lists === 1;
  setTimeout(() => answer(id, { tools: tools() }), kind === "list" ? ms : 0);
  if (kind === "list-changed" && first) setTimeout(addLateProbe, LIST_CHANGED_AFTER_MS);
}

function addLateProbe() {
  lateProbe = true;
  send({ method: "notifications/tools/list_changed" });
}

function callTool({ id, params }) {
  const token = params?._meta?.progressToken;
  if (kind === "progress" && token !== undefined) report(id, token);
  if (answerAfter === null) return;
  setTimeout(() => settle(id, params?.name), answerAfter);
}

function settle(id, name) {
  clearInterval(reports.get(id));
  reports.delete(id);
  const text = name === "late_probe" ? "late probe done" : "the slow probe is done: 42 files built";
  answer(id, { content: [{ type: "text", text }] });
}

function report(id, progressToken) {
  let progress = 0;
  const tick = () => send({ method: "notifications/progress", params: { progressToken, progress: ++progress } });
  reports.set(id, setInterval(tick, ms));
}

function cancelled({ params }) {
  clearInterval(reports.get(params?.requestId));
  reports.delete(params?.requestId);
}

const METHODS = {
  initialize,
  ping: ({ id }) => answer(id, {}),
  "tools/list": listTools,
  "tools/call": callTool,
  "prompts/list": ({ id }) => answer(id, { prompts: [] }),
  "resources/list": ({ id }) => answer(id, { resources: [] }),
  "resources/templates/list": ({ id }) => answer(id, { resourceTemplates: [] }),
  "notifications/cancelled": cancelled,
};

function handle(message) {
  const method = METHODS[message.method];
  if (method) return method(message);
  if (message.method && message.id !== undefined) {
    send({ id: message.id, error: { code: -32601, message: `Method not found: ${message.method}` } });
  }
}

function read(line) {
  let message;
  try {
    message = JSON.parse(line);
  } catch {
    return note("event", { not_json: line.slice(0, 200) });
  }
  note("in", message);
  for (const one of Array.isArray(message) ? message : [message]) handle(one);
}

function leave(why) {
  note("event", why);
  process.exit(0);
}

note("event", { started: process.argv.slice(1) });
setInterval(() => note("event", { alive: true }), BEAT_MS);
createInterface({ input: process.stdin }).on("line", read).on("close", () => leave({ eof: true }));
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.on(signal, () => leave({ signal }));
// A client that is gone is a measurement, not a crash.
process.stdout.on("error", (error) => leave({ stdout: error.code }));
