// What the Node drivers share: the environment that they are run with, the deadline, the last line.
//
// A driver says how its library is used (`ask` returns what the caller got); `run` does the rest. The SDKs have no agent of
// their own, so `converse` is one.

import { createRequire } from "node:module";
import { join } from "node:path";
import { decide } from "../model/rule.mjs";

export const installed = process.env.CLIENT_INSTALLED ?? "";
/** Loads a package from where it was installed, which is not beside this file. */
export const load = createRequire(join(installed, "drivers.cjs"));
/** The server to start: `command`, `args` and `env`. */
export const server = JSON.parse(process.env.CLIENT_SERVER ?? "{}");

const DONE = "42 files built";
const MAX_TEXT = 2000;
const began = Date.now();

function finish(outcome, text) {
  console.log(JSON.stringify({ outcome, text: text.slice(0, MAX_TEXT), seconds: (Date.now() - began) / 1000 }));
  // At once: the library's timers and its server's pipes end with us.
  process.exit(0);
}

function judge(text) {
  if (text.startsWith("NO TOOL")) return "no-tools";
  return text.includes(DONE) ? "result" : "error";
}

/** The smallest agent around an SDK's client: asks the scripted model's own rule, without a way over HTTP. */
export async function converse(client) {
  const { tools } = await client.listTools();
  const turns = [];
  for (;;) {
    const next = decide({ tools, turns }, process.env.MODEL_MODE);
    if (!next.call) return next.text;
    const { content } = await client.callTool({ name: next.call.name, arguments: next.call.arguments });
    turns.push({ role: "tool", text: "", results: [{ by: next.call.name, text: content[0].text }] });
  }
}

/** Runs `ask` once and prints what came of it. */
export async function run(ask) {
  process.env.HOME = process.env.CLIENT_HOME;
  process.chdir(process.env.CLIENT_HOME);
  setTimeout(() => finish("deadline", ""), Number(process.env.CLIENT_DEADLINE) * 1000);
  try {
    const text = await ask();
    finish(judge(text), text);
  } catch (error) {
    finish("error", String(error));
  }
}
