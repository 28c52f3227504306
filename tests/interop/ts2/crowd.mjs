// Clients on the official TypeScript SDK 2.x among others, in its default, the legacy era; `../js/crowd.mjs` says what
// they do.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { INFO, crowd } from '../js/crowd.mjs';

await crowd(async url => {
    const client = new Client(INFO, { capabilities: {} });
    const transport = new StreamableHTTPClientTransport(new URL(url));
    await client.connect(transport);
    return {
        names: async () => (await client.listTools(undefined, { cacheMode: 'bypass' })).tools.map(tool => tool.name),
        call: (name, args) => client.callTool({ name, arguments: args }, { timeout: 60_000 }),
        close: async () => {
            await transport.terminateSession();
            await client.close();
        }
    };
});
