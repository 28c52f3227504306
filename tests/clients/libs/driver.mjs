// What the Node drivers share: the environment that they are run with, the deadline, the last line.
//
// A driver says how its library is used (`ask` returns what the caller got); `run` does the rest.

import { createRequire } from "node:module";
import { join } from "node:path";

export const installed = process.env.CLIENT_INSTALLED ?? "";
/** Loads a package from where it was installed, which is not beside this file. */
export const load = createRequire(join(installed, "drivers.cjs"));
/** The server to start: `command`, `args` and `env`. */
export const server = JSON.parse(process.env.CLIENT_SERVER ?? "{}");
export const modelUrl = process.env.CLIENT_MODEL ?? "";
export const MODEL = "scripted-model";
export const PROMPT = "Run the slow probe and tell me its result.";

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
