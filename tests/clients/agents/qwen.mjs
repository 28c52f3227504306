// Qwen Code: `qwen -p`; its file is ~/.qwen/settings.json (`mcpServers.NAME`, `timeout` in ms).
import { drive, join, limit, model, modules, PROMPT, server } from "./drive.mjs";

const settings = {
  security: { auth: { selectedType: "openai" } },
  general: { enableAutoUpdate: false }, privacy: { usageStatisticsEnabled: false }, telemetry: { enabled: false },
  model: { name: "scripted-model" },
  mcpServers: { probe: { ...server, trust: true, timeout: limit } },
};

await drive({
  files: { ".qwen/settings.json": settings },
  command: join(modules, ".bin", "qwen"),
  args: ["--yolo", "--prompt", PROMPT],
  env: { OPENAI_API_KEY: "none", OPENAI_BASE_URL: `${model}/v1`, OPENAI_MODEL: "scripted-model" },
});
