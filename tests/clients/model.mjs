// The scripted model on loopback: it asks for `slow_probe`, and repeats what it got.
//
// Speaks OpenAI's chat completions and responses, Anthropic's messages and Gemini's generateContent, streamed and not.
// The paths are matched by their ends, so any base URL of it works (`http://127.0.0.1:PORT`, `…/v1`, `…/v1beta`).
//
// MODEL_PORT  the port; without it any free one. The first line on stdout is the base URL.
// MODEL_MODE  plain: asks for `slow_probe` once, then says `RESULT: …`
//             obey:  also follows what the text of a result says ("Call the tool `x_wait` with {…}")
// MODEL_CALLS [{"name", "arguments"}, …], made one after the other; without it `slow_probe` alone
// MODEL_LINGER_MS   how long it thinks before its last words: an agent that has them ends, and its server with it
// MODEL_PATIENCE_MS how long it thinks when the tool is not offered: a client may still be waiting for its server
// MODEL_LOG   a JSON line for each request: path, the tools offered, what was decided
//
// What it decides is in model/rule.mjs; each API is one file beside it: `read` a request, `write` a decision.

import { appendFileSync } from "node:fs";
import { createServer } from "node:http";
import { decide } from "./model/rule.mjs";
import * as anthropic from "./model/anthropic.mjs";
import * as chat from "./model/chat.mjs";
import * as gemini from "./model/gemini.mjs";
import * as responses from "./model/responses.mjs";

const MODE = process.env.MODEL_MODE ?? "plain";
const CALLS = process.env.MODEL_CALLS ? JSON.parse(process.env.MODEL_CALLS) : undefined;
const LINGER = { last: Number(process.env.MODEL_LINGER_MS ?? 0), missing: Number(process.env.MODEL_PATIENCE_MS ?? 0) };
const MAX_BODY = 64 * 1024 * 1024;
const DIALECTS = [
  [/\/chat\/completions$/, chat],
  [/\/responses$/, responses],
  [/\/messages$/, anthropic],
  [/:(stream)?[gG]enerateContent$/, gemini],
];
const NAME = "scripted-model";
// What agents ask for beside the conversation; each reads the key that its API has.
const MODEL = { id: NAME, slug: NAME, name: `models/${NAME}`, object: "model", display_name: NAME };

function log(entry) {
  if (process.env.MODEL_LOG) appendFileSync(process.env.MODEL_LOG, JSON.stringify({ at: Date.now(), ...entry }) + "\n");
}

function json(response, status, value) {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(value));
}

function stream(response, events) {
  response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-cache" });
  for (const { event, data } of events) {
    if (event) response.write(`event: ${event}\n`);
    response.write(`data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  }
  response.end();
}

function converse(response, path, body, dialect) {
  const asked = dialect.read(body, path);
  const decision = decide(asked, MODE, CALLS);
  const got = asked.turns.at(-1)?.results;
  log({ path, tools: asked.tools.map((tool) => tool.name), turns: asked.turns.length, got, decision });
  const say = () => asked.stream ? stream(response, dialect.events(decision, asked))
    : json(response, 200, dialect.whole(decision, asked));
  setTimeout(say, LINGER[decision.kind] ?? 0);
}

function other(response, method, path) {
  log({ path, method });
  if (/\/models$/.test(path)) return json(response, 200, { object: "list", data: [MODEL], models: [MODEL] });
  if (/\/models\/[^/]+$/.test(path)) return json(response, 200, MODEL);
  if (/count_?[tT]okens$/.test(path)) return json(response, 200, { totalTokens: 10, input_tokens: 10 });
  json(response, 404, { error: { message: `the scripted model does not know ${path}`, type: "not_found_error" } });
}

async function bodyOf(request) {
  let text = "";
  for await (const chunk of request) {
    text += chunk;
    if (text.length > MAX_BODY) throw new Error("request too large");
  }
  return text ? JSON.parse(text) : {};
}

async function serve(request, response) {
  const path = new URL(request.url, "http://loopback").pathname;
  try {
    const body = await bodyOf(request);
    const found = request.method === "POST" && DIALECTS.find(([pattern]) => pattern.test(path));
    if (found) converse(response, path, body, found[1]);
    else other(response, request.method, path);
  } catch (error) {
    log({ path, error: String(error) });
    json(response, 400, { error: { message: String(error), type: "invalid_request_error" } });
  }
}

const server = createServer(serve);
server.listen(Number(process.env.MODEL_PORT ?? 0), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
