// Codex CLI: `codex exec`; its file is ~/.codex/config.toml (`[mcp_servers.NAME]`, `tool_timeout_sec`, `startup_timeout_sec`).
import { drive, join, limit, model, modules, PROMPT, server } from "./drive.mjs";

const text = (value) => JSON.stringify(value);
const env = Object.entries(server.env ?? {}).map(([key, value]) => `${key} = ${text(value)}`).join(", ");
const config = `
model = "scripted-model"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = ${text(`${model}/v1`)}
wire_api = "responses"

[mcp_servers.probe]
command = ${text(server.command)}
args = [${server.args.map(text).join(", ")}]
env = { ${env} }
${limit ? `tool_timeout_sec = ${limit / 1000}` : ""}
`;

await drive({
  files: { ".codex/config.toml": config },
  command: join(modules, ".bin", "codex"),
  args: ["exec", "--skip-git-repo-check", PROMPT],
});
