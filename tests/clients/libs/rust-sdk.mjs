// The official Rust SDK, without an agent: one call, made by `rmcp-caller` (tests/interop/rust).

import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { installed, run, server } from "./driver.mjs";

await run(async () => {
  const env = { ...process.env, ...server.env };
  const caller = spawn(join(installed, "rmcp-caller"), [server.command, ...server.args], { env, stdio: ["pipe", "pipe", "inherit"] });
  return (await text(caller.stdout)).trim();
});
