// A client on the official TypeScript SDK 2.x; what it checks is in `../js/checks.mjs`.
//
// `--era legacy` is this SDK's default, `modern` pins the 2026 revision, `auto` asks first: over
// stdio it starts a second, short-lived copy of the server to see whether it answers
// `server/discover`.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERS, main } from '../js/checks.mjs';

const MODES = { legacy: 'legacy', modern: { pin: '2026-07-28' }, auto: 'auto' };

async function connect({ command, args, url, era }) {
    const client = new Client(
        { name: 'interop-ts2', version: '1.0.0' },
        { capabilities: { sampling: {}, elicitation: {} }, versionNegotiation: { mode: MODES[era] } }
    );
    client.setRequestHandler('sampling/createMessage', ({ params }) => {
        const { content } = params.messages[0];
        return ANSWERS.sampling((Array.isArray(content) ? content[0] : content).text);
    });
    client.setRequestHandler('elicitation/create', ({ params }) => ANSWERS.elicitation(params.requestedSchema));
    const transport = url
        ? new StreamableHTTPClientTransport(new URL(url))
        : new StdioClientTransport({ command, args });
    await client.connect(transport);

    const modern = client.getProtocolEra() === 'modern';
    const fresh = { cacheMode: 'bypass' };
    return {
        era: client.getProtocolEra(),
        version: client.getNegotiatedProtocolVersion(),
        serverName: () => client.getServerVersion()?.name,
        pid: () => transport.pid,
        session: () => transport.sessionId,
        close: async () => {
            await transport.terminateSession?.();
            await client.close();
        },
        ping: async () => Object.keys(await client.ping()).join(),
        discover: async () => {
            const { supportedVersions, capabilities } = await client.discover();
            return `${supportedVersions.join(' ')}: ${Object.keys(capabilities).sort().join(' ')}`;
        },
        lists: async () => ({
            tools: (await client.listTools(undefined, fresh)).tools,
            resources: (await client.listResources(undefined, fresh)).resources,
            prompts: (await client.listPrompts(undefined, fresh)).prompts
        }),
        call: (name, args, { meta, ...options } = {}) =>
            client.callTool({ name, arguments: args, ...(meta && { _meta: meta }) }, options),
        readResource: uri => client.readResource({ uri }, fresh),
        getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
        completePrompt: (name, argument) => client.complete({ ref: { type: 'ref/prompt', name }, argument }),
        setLevel: level => client.setLoggingLevel(level),
        watch: async uri => {
            if (modern) {
                const subscription = await client.listen({ resourceSubscriptions: [uri] });
                return () => subscription.close();
            }
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        onUpdated: heard => client.setNotificationHandler('notifications/resources/updated', n => heard(n.params.uri)),
        onLog: heard => client.setNotificationHandler('notifications/message', n => heard(n.params))
    };
}

await main(connect);
