// The official TypeScript SDK 1.x, in its default settings.

import { converse, load, run, server } from "./driver.mjs";

const { Client } = load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");

await run(async () => {
  const client = new Client({ name: "typescript-sdk-1", version: "1.0.0" });
  await client.connect(new StdioClientTransport(server));
  return converse(client);
});
