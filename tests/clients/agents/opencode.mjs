// opencode: `opencode run`; its file is opencode.json (`mcp.NAME`, `timeout` in ms).
import { drive, join, limit, model, modules, PROMPT, server } from "./drive.mjs";

const mcp = { type: "local", command: [server.command, ...server.args], environment: server.env, enabled: true };
if (limit) mcp.timeout = limit;
const provider = {
  npm: "@ai-sdk/openai-compatible", name: "scripted", options: { baseURL: `${model}/v1`, apiKey: "none" },
  models: { "scripted-model": { name: "scripted-model", tool_call: true, limit: { context: 100000, output: 4096 } } },
};
const config = {
  autoupdate: false, share: "disabled", model: "scripted/scripted-model", small_model: "scripted/scripted-model",
  enabled_providers: ["scripted"], provider: { scripted: provider }, mcp: { probe: mcp }, permission: "allow",
};

await drive({
  files: { ".config/opencode/opencode.json": config },
  command: join(modules, `opencode-linux-${process.arch}`, "bin", "opencode"),
  args: ["run", "--model", "scripted/scripted-model", PROMPT],
  env: { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1", OPENCODE_DISABLE_DEFAULT_PLUGINS: "1" },
});
