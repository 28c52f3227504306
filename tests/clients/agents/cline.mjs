// Cline CLI: `cline PROMPT`; its file is ~/.cline/data/settings/cline_mcp_settings.json (`mcpServers.NAME`, `timeout` in s).
import { drive, join, limit, model, modules, PROMPT, server } from "./drive.mjs";

const settings = { provider: "openai-compatible", apiKey: "none", model: "scripted-model", baseUrl: `${model}/v1` };
const providers = {
  version: 1, lastUsedProvider: "openai-compatible", modes: {},
  providers: { "openai-compatible": { settings, updatedAt: "2026-01-01T00:00:00.000Z", tokenSource: "manual" } },
};
const probe = { transport: { type: "stdio", ...server } };
if (limit) probe.timeout = limit / 1000;

await drive({
  files: {
    ".cline/data/settings/providers.json": providers,
    ".cline/data/settings/cline_mcp_settings.json": { mcpServers: { probe } },
  },
  command: join(modules, ".bin", "cline"),
  args: ["--provider", "openai-compatible", "--model", "scripted-model", PROMPT],
  env: { CLINE_TELEMETRY_DISABLED: "1", CLINE_NO_AUTO_UPDATE: "1" },
});
