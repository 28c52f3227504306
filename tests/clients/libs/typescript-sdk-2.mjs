// The official TypeScript SDK 2.x, without an agent: one call.

import { load, run, server } from "./driver.mjs";

const { Client } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

await run(async () => {
  const client = new Client({ name: "typescript-sdk-2", version: "1.0.0" });
  await client.connect(new StdioClientTransport(server));
  await client.listTools();
  const result = await client.callTool({ name: "slow_probe", arguments: {} });
  return result.content[0].text;
});
