// MCP Inspector: `mcp-inspector --cli`; it has no model, so what it prints is what the caller got.
import { drive, join, modules, server } from "./drive.mjs";

const env = Object.entries(server.env ?? {}).flatMap(([key, value]) => ["-e", `${key}=${value}`]);

/** The Inspector prints the result as JSON, or an error. */
function read({ output, late }) {
  const text = output.trim().slice(0, 2000);
  if (late) return { outcome: "deadline", text };
  return { outcome: /42 files built/.test(output) ? "result" : "error", text };
}

await drive({
  command: join(modules, ".bin", "mcp-inspector"),
  args: ["--cli", ...env, "--method", "tools/call", "--tool-name", "slow_probe", "--", server.command, ...server.args],
}, read);
