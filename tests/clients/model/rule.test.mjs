// The scripted model, in the words of each API. Run by `cargo xtask test unit`, or `node --test tests/clients/model/`.

import assert from "node:assert/strict";
import { test } from "node:test";
import { decide } from "./rule.mjs";
import * as anthropic from "./anthropic.mjs";
import * as chat from "./chat.mjs";
import * as gemini from "./gemini.mjs";
import * as responses from "./responses.mjs";

const TICKET = 'still running. Call the tool `probe_wait` with {"ticket": "ab"} now.';
const tool = (name) => ({ type: "function", function: { name, parameters: { type: "object", properties: {} } } });

/** A conversation over chat completions: names of the tools, then (caller, result) pairs. */
function conversation(names, ...results) {
  const told = results.flatMap(([by, content], index) => [
    { role: "assistant", tool_calls: [{ id: `c${index}`, function: { name: by } }] },
    { role: "tool", tool_call_id: `c${index}`, content },
  ]);
  return chat.read({ tools: names.map(tool), messages: [{ role: "user", content: "go" }, ...told] });
}

test("asks for the probe under whatever prefix it has", () => {
  assert.equal(decide(conversation(["edit", "mcp__probe__slow_probe"])).call.name, "mcp__probe__slow_probe");
});

test("says so when the tool is not offered, and takes a request without tools for an aside", () => {
  assert.equal(decide(conversation(["edit"])).kind, "missing");
  assert.equal(decide(conversation([])).kind, "aside");
});

test("repeats what it got, and obeys it only when told to", () => {
  const handedOff = conversation(["x_slow_probe", "x_probe_wait"], ["x_slow_probe", TICKET]);
  assert.equal(decide(handedOff, "plain").text, `RESULT: ${TICKET}`);
  assert.deepEqual(decide(handedOff, "obey").call, { name: "x_probe_wait", namespace: undefined, arguments: { ticket: "ab" } });
});

test("reads over the quotes of a result that is handed on as JSON", () => {
  const escaped = conversation(["x_slow_probe", "x_probe_wait"], ["x_slow_probe", JSON.stringify({ text: TICKET })]);
  assert.deepEqual(decide(escaped, "obey").call.arguments, { ticket: "ab" });
});

test("does not take a warning for an order", () => {
  const warned = conversation(["slow_probe"], ["slow_probe", "done. Do not call `slow_probe` again, that would run it twice."]);
  assert.match(decide(warned, "obey").text, /^RESULT: done/);
});

test("searches for a hidden tool, and calls it by the name that was found", () => {
  const hidden = ["tool_search", "tool_call"];
  assert.deepEqual(decide(conversation(hidden)).call.arguments, { query: "slow_probe" });
  const found = conversation(hidden, ["tool_search", '<function>{"name":"mcp__p__slow_probe"}</function>']);
  assert.deepEqual(decide(found).call, { name: "tool_call", arguments: { name: "mcp__p__slow_probe", arguments: {} } });
});

test("makes the calls of a list one after the other", () => {
  const calls = [{ name: "one", arguments: { a: 1 } }, { name: "two", arguments: {} }];
  assert.equal(decide(conversation(["one", "two"]), "plain", calls).call.name, "one");
  assert.equal(decide(conversation(["one", "two"], ["one", "x"]), "plain", calls).call.name, "two");
  assert.equal(decide(conversation(["one", "two"], ["one", "x"], ["two", "y"]), "plain", calls).text, "RESULT: y");
});

test("reads tools and results of the other APIs", () => {
  const namespace = { type: "namespace", name: "mcp__p", tools: [{ type: "function", name: "slow_probe" }] };
  assert.equal(decide(responses.read({ tools: [namespace], input: "go" })).call.namespace, "mcp__p");
  const output = { type: "function_call_output", call_id: "c", output: "done" };
  assert.equal(decide(responses.read({ tools: [namespace], input: [output] })).text, "RESULT: done");
  const block = { type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "done" }] };
  assert.equal(decide(anthropic.read({ messages: [{ role: "user", content: [block] }] })).text, "RESULT: done");
  const part = { functionResponse: { name: "p", response: { output: "done" } } };
  assert.equal(decide(gemini.read({ contents: [{ role: "user", parts: [part] }] }, "x:generateContent")).text, "RESULT: done");
});
