// Continue CLI: `cn -p`; its file is ~/.continue/config.yaml (`mcpServers`; no setting for the limit of a call).
import { drive, home, join, model, modules, PROMPT, server } from "./drive.mjs";

// JSON is YAML.
const config = {
  name: "scripted", version: "1.0.0", schema: "v1",
  models: [{
    name: "scripted", provider: "openai", model: "scripted-model", apiBase: `${model}/v1`, apiKey: "none",
    roles: ["chat"], capabilities: ["tool_use"], useResponsesApi: false,
  }],
  mcpServers: [{ name: "probe", ...server }],
};

await drive({
  files: { ".continue/config.yaml": config },
  command: join(modules, ".bin", "cn"),
  args: ["--print", "--auto", "--config", join(home, ".continue/config.yaml"), PROMPT],
  env: { CONTINUE_TELEMETRY_ENABLED: "0", CONTINUE_METRICS_ENABLED: "0", CONTINUE_CLI_AUTO_UPDATED: "1" },
});
