// What every driver of an agent does: write its files into an empty home, start it once, wait, say what came out.
//
// A driver says how its client is told about the server and the model; nothing else differs.

import { spawn } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

export { join };

export const server = JSON.parse(process.env.CLIENT_SERVER ?? "{}");
export const home = process.env.CLIENT_HOME ?? "";
export const model = process.env.CLIENT_MODEL ?? "";
export const modules = join(process.env.CLIENT_INSTALLED ?? "", "node_modules");
// The client's own limit in ms, where its user wrote one.
export const limit = process.env.CLIENT_LIMIT_MS ? Number(process.env.CLIENT_LIMIT_MS) : undefined;
export const PROMPT = "Run the slow probe and tell me its result.";

const began = Date.now();
const deadline = Number(process.env.CLIENT_DEADLINE ?? 60) * 1000;
// An agent that is told to stop may clean up; then it is killed.
const GRACE_MS = 2000;
const MAX_OUTPUT = 1024 * 1024;

/** Node of the version that the newest of these clients ask for; it came with them. */
const node = join(modules, `node-linux-${process.arch}`, "bin");

function environment(extra) {
  const { PATH, LANG, TERM } = process.env;
  return {
    PATH: `${node}:${PATH}`, LANG: LANG ?? "C.UTF-8", TERM: TERM ?? "dumb", CI: "1", NO_COLOR: "1",
    HOME: home, TMPDIR: join(home, "tmp"), USERPROFILE: home,
    XDG_CONFIG_HOME: join(home, ".config"), XDG_DATA_HOME: join(home, ".local/share"),
    XDG_STATE_HOME: join(home, ".local/state"), XDG_CACHE_HOME: join(home, ".cache"),
    DO_NOT_TRACK: "1",
    ...extra,
  };
}

function write(files) {
  mkdirSync(join(home, "tmp"), { recursive: true });
  for (const [name, content] of Object.entries(files)) {
    const path = join(home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content, null, 2));
  }
}

/** The whole group: an agent that was killed leaves its server otherwise. */
function end(child, signal) {
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

/** Runs the client to its end, or to the driver's: {output, late}. */
export function run({ command, args, env }) {
  const work = join(home, "work");
  mkdirSync(work, { recursive: true });
  const child = spawn(command, args, { cwd: work, env: environment(env), detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const keep = (chunk) => { output = (output + chunk).slice(-MAX_OUTPUT); };
  child.stdout.on("data", keep);
  child.stderr.on("data", keep);
  return new Promise((done) => {
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      end(child, "SIGTERM");
      setTimeout(() => end(child, "SIGKILL"), GRACE_MS);
    }, began + deadline - Date.now());
    const finish = (error) => {
      clearTimeout(timer);
      setTimeout(() => { end(child, "SIGKILL"); done({ output: error ? String(error) : output, late }); }, 100);
    };
    child.on("error", finish);
    child.on("exit", () => finish());
  });
}

/** What the scripted model said last is what the caller got. */
function judge({ output, late }) {
  const plain = output.replace(/\u001b\[[0-9;?]*[A-Za-z]/g, "");
  const said = /(RESULT|NO TOOL|GAVE UP): [^]*/.exec(plain.slice(Math.max(0, plain.lastIndexOf("RESULT: "))));
  const text = (said?.[0] ?? plain.slice(-2000)).slice(0, 2000).trim();
  if (late) return { outcome: "deadline", text };
  if (!said) return { outcome: "failed", text };
  if (said[1] === "NO TOOL") return { outcome: "no-tools", text };
  return { outcome: /42 files built/.test(text) ? "result" : "error", text };
}

/** The driver's last line. */
export function report(verdict) {
  console.log(JSON.stringify({ ...verdict, seconds: (Date.now() - began) / 1000 }));
}

/** files: path below the home → content; the rest is how the client is started. */
export async function drive({ files = {}, ...how }) {
  write(files);
  const ended = await run(how);
  if (process.env.CLIENT_VERBOSE) console.error(ended.output);
  report(judge(ended));
}
