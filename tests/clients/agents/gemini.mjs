// Gemini CLI: `gemini -p`; its file is ~/.gemini/settings.json (`mcpServers.NAME`, `timeout` in ms).
import { drive, join, limit, model, modules, PROMPT, server } from "./drive.mjs";

const settings = {
  security: { auth: { selectedType: "gemini-api-key" }, folderTrust: { enabled: false } },
  general: { enableAutoUpdate: false, enableAutoUpdateNotification: false },
  privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
  mcpServers: { probe: { ...server, trust: true, timeout: limit } },
};

await drive({
  files: { ".gemini/settings.json": settings },
  command: join(modules, ".bin", "gemini"),
  args: ["--model", "gemini-2.5-flash", "--yolo", "--prompt", PROMPT],
  env: { GEMINI_API_KEY: "none", GOOGLE_GEMINI_BASE_URL: model, GEMINI_CLI_TRUST_WORKSPACE: "true" },
});
