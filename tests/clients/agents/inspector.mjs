// MCP Inspector: `mcp-inspector --cli`, one call for each start; `--connect-timeout` in ms, no setting for the call.
//
// It has no model, so what it prints is what the caller got. Where the model would obey the text of a result, a person
// at the terminal would: that is done here.
import { order } from "../model/rule.mjs";
import { join, modules, report, run, server } from "./drive.mjs";

const env = Object.entries(server.env ?? {}).flatMap(([key, value]) => ["-e", `${key}=${value}`]);
const MAX_CALLS = 20;

function call(tool, given) {
  const asked = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", JSON.stringify(given)];
  const args = ["--cli", ...env, ...asked, "--", server.command, ...server.args];
  return run({ command: join(modules, ".bin", "mcp-inspector"), args });
}

function judge({ output, late }) {
  const text = output.trim().slice(0, 2000);
  if (late) return { outcome: "deadline", text };
  return { outcome: /42 files built/.test(output) ? "result" : "error", text };
}

let ended = await call("slow_probe", {});
for (let calls = 1; process.env.MODEL_MODE === "obey" && calls < MAX_CALLS; calls++) {
  const next = order(ended.output);
  if (!next) break;
  ended = await call(next.name, next.arguments);
}
report(judge(ended));
