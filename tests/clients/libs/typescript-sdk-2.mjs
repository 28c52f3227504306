// The official TypeScript SDK 2.x, in its default settings.

import { converse, load, run, server } from "./driver.mjs";

const { Client } = load("@modelcontextprotocol/client");
const { StdioClientTransport } = load("@modelcontextprotocol/client/stdio");

await run(async () => {
  const client = new Client({ name: "typescript-sdk-2", version: "1.0.0" });
  await client.connect(new StdioClientTransport(server));
  return converse(client);
});
