// A client on the official TypeScript SDK 1.x; what it checks is in `../js/checks.mjs`.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    LoggingMessageNotificationSchema,
    ResourceUpdatedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, main } from '../js/checks.mjs';

async function connect({ command, args, url, era }) {
    if (era === 'modern') throw new Error('SDK 1.x speaks the legacy era only');
    const client = new Client(
        { name: 'interop-ts1', version: '1.0.0' },
        { capabilities: { sampling: {}, elicitation: {} } }
    );
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) =>
        ANSWERS.sampling(params.messages[0].content.text)
    );
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => ANSWERS.elicitation(params.requestedSchema));
    const transport = url
        ? new StreamableHTTPClientTransport(new URL(url))
        : Object.assign(new StdioClientTransport({ command, args }), {
              setProtocolVersion(negotiated) {
                  this.protocolVersion = negotiated;
              }
          });
    await client.connect(transport);

    return {
        era: 'legacy',
        version: transport.protocolVersion,
        serverName: () => client.getServerVersion().name,
        pid: () => transport.pid,
        session: () => transport.sessionId,
        close: async () => {
            await transport.terminateSession?.();
            await client.close();
        },
        ping: async () => Object.keys(await client.ping()).join(),
        lists: async () => ({
            tools: (await client.listTools()).tools,
            resources: (await client.listResources()).resources,
            prompts: (await client.listPrompts()).prompts
        }),
        call: (name, args, { meta, ...options } = {}) =>
            client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, undefined, options),
        readResource: uri => client.readResource({ uri }),
        getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
        completePrompt: (name, argument) => client.complete({ ref: { type: 'ref/prompt', name }, argument }),
        setLevel: level => client.setLoggingLevel(level),
        watch: async uri => {
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        onUpdated: heard => client.setNotificationHandler(ResourceUpdatedNotificationSchema, n => heard(n.params.uri)),
        onLog: heard => client.setNotificationHandler(LoggingMessageNotificationSchema, n => heard(n.params))
    };
}

await main(connect);
