// Clients on the official TypeScript SDK 1.x among others; `../js/crowd.mjs` says what they do.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { INFO, crowd } from '../js/crowd.mjs';

await crowd(async url => {
    const client = new Client(INFO, { capabilities: {} });
    const transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
    return {
        names: async () => (await client.listTools()).tools.map(tool => tool.name),
        call: (name, args) => client.callTool({ name, arguments: args }, undefined, { timeout: 60_000 }),
        close: async () => {
            await transport.terminateSession();
            await client.close();
        }
    };
});
